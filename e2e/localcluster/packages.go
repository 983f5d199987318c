package localcluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// requirement is a program or file of a Debian package that the cluster runs.
type requirement struct {
	pkg string
	// file is an absolute path, or a name to look up in searchPath.
	file string
}

// searchPath is where Debian puts programs. $PATH is not used: root's often
// lacks the sbin directories.
var searchPath = [...]string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}

// cniDir is where Debian's containernetworking-plugins puts its plugins.
const cniDir = "/usr/lib/cni"

func listRequirements() []requirement {
	return []requirement{
		{"containerd", "containerd"},
		{"containerd", "containerd-shim-runc-v2"},
		{"containerd", "ctr"},
		{"runc", "runc"},
		{"containernetworking-plugins", cniDir + "/bridge"},
		{"containernetworking-plugins", cniDir + "/host-local"},
		{"containernetworking-plugins", cniDir + "/loopback"},
		{"iproute2", "ip"},
		{"nftables", "nft"},
		{"mount", "mount"},
		{"mount", "umount"},
		{"busybox-static", "/bin/busybox"},
	}
}

// findExecutable finds a required file; ok is false if it is missing.
func findExecutable(file string) (path string, ok bool) {
	candidates := []string{file}
	if !filepath.IsAbs(file) {
		candidates = nil
		for _, dir := range searchPath {
			candidates = append(candidates, filepath.Join(dir, file))
		}
	}
	for _, c := range candidates {
		if info, err := os.Stat(c); err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
			return c, true
		}
	}
	return "", false
}

// missingPackages returns the Debian packages of what is not there, sorted.
func missingPackages(required []requirement, has func(file string) bool) []string {
	var missing []string
	for _, r := range required {
		if !has(r.file) && !slices.Contains(missing, r.pkg) {
			missing = append(missing, r.pkg)
		}
	}
	slices.Sort(missing)
	return missing
}

func isInstalled(file string) bool {
	_, ok := findExecutable(file)
	return ok
}

// installCommand is what a user must type to get the packages.
func installCommand(packages []string) string {
	return "apt-get update && apt-get install -y --no-install-recommends " + strings.Join(packages, " ")
}

// ensurePackages installs the missing Debian packages, or says how to. Only
// root comes this far.
func (c *Cluster) ensurePackages(ctx context.Context) error {
	missing := missingPackages(listRequirements(), isInstalled)
	if len(missing) == 0 {
		return nil
	}
	if _, ok := findExecutable("apt-get"); !ok {
		return fmt.Errorf("find Debian packages: missing %s, and this is no Debian (no apt-get); install what holds the same programs. On Debian the command is: %s",
			strings.Join(missing, ", "), installCommand(missing))
	}
	c.say("installing Debian packages: %s", strings.Join(missing, " "))
	for _, args := range [][]string{
		{"update"},
		append([]string{"install", "-y", "--no-install-recommends"}, missing...),
	} {
		cmd := exec.CommandContext(ctx, "apt-get", args...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("install Debian packages: apt-get %s: %w\n%s\ninstall them with: %s", args[0], err, lastLines(out.String(), 15), installCommand(missing))
		}
	}
	if missing = missingPackages(listRequirements(), isInstalled); len(missing) > 0 {
		return errors.New("install Debian packages: still missing " + strings.Join(missing, ", ") + "; install them with: " + installCommand(missing))
	}
	return nil
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	return strings.Join(lines, "\n")
}
