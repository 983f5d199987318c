package binaries

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// hashLength is how many hexadecimal digits of a hash go into a folder's name.
const hashLength = 12

// place is a tool module in this source tree together with the cache folder
// that its present pins and flags lead to.
type place struct {
	module  toolModule
	source  string // the folder with go.mod
	version string // of the pinned module
	flags   []string
	cache   string
}

// locateModule reads the pins of a tool module.
func locateModule(root string, module toolModule) (place, error) {
	p := place{module: module, source: filepath.Join(root, toolsDir, module.dir)}
	mod, err := os.ReadFile(filepath.Join(p.source, "go.mod"))
	if err != nil {
		return place{}, fmt.Errorf("read pins of %s: %w", module.dir, err)
	}
	sum, err := os.ReadFile(filepath.Join(p.source, "go.sum"))
	if err != nil {
		return place{}, fmt.Errorf("read checksums of %s: %w", module.dir, err)
	}
	own, err := os.ReadFile(filepath.Join(p.source, "main.go"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return place{}, fmt.Errorf("read source of %s: %w", module.dir, err)
	}
	p.version, err = requiredVersion(mod, module.pins)
	if err != nil {
		return place{}, fmt.Errorf("read pins of %s: %w", module.dir, err)
	}
	p.flags = []string{"-trimpath", "-ldflags=" + linkerFlags(module, p.version)}
	if len(module.tags) > 0 {
		p.flags = append(p.flags, "-tags="+strings.Join(module.tags, ","))
	}
	cache, err := CacheDir()
	if err != nil {
		return place{}, err
	}
	p.cache = filepath.Join(cache, "bin", module.dir+"-"+p.version+"-"+computeFingerprint(mod, sum, own, p.flags))
	return p, nil
}

func (p place) program(name string) string { return filepath.Join(p.cache, name) }

func (p place) missingPrograms(names []string) []string {
	var missing []string
	for _, name := range names {
		if !isExecutable(p.program(name)) {
			missing = append(missing, name)
		}
	}
	return missing
}

// buildMissing builds those of the named programs that the cache does not have.
func (p place) buildMissing(ctx context.Context, table map[string]program, names []string) error {
	if len(p.missingPrograms(names)) == 0 {
		return nil
	}
	if err := os.MkdirAll(p.cache, 0o755); err != nil {
		return fmt.Errorf("create cache directory: %w", err)
	}
	unlock, err := lockFile(ctx, p.cache+".lock")
	if err != nil {
		return fmt.Errorf("wait for another build of %s: %w", p.module.dir, err)
	}
	defer unlock()
	// The process that held the lock may have built just these.
	missing := p.missingPrograms(names)
	if len(missing) == 0 {
		return nil
	}
	return p.build(ctx, table, missing)
}

// build compiles the named programs into a folder beside the cache, and moves
// each to its name. The caller holds the lock.
func (p place) build(ctx context.Context, table map[string]program, names []string) error {
	compiler, err := exec.LookPath("go")
	if err != nil {
		return fmt.Errorf("build %s: the Go compiler is not in $PATH; install it from https://go.dev/dl "+
			"(the version in go.work or newer): %w", strings.Join(names, ", "), err)
	}
	// Same file system, so that the rename below is atomic.
	temp, err := os.MkdirTemp(p.cache, ".build-*")
	if err != nil {
		return fmt.Errorf("create build directory: %w", err)
	}
	defer func() { _ = os.RemoveAll(temp) }() // only rubbish is left there

	fmt.Fprintf(os.Stderr, "building %s %s from source, once, about %s\n",
		strings.Join(names, ", "), p.version, FormatDuration(p.module.estimate))
	if err := p.compile(ctx, compiler, temp, table, names); err != nil {
		return fmt.Errorf("build %s %s: %w", strings.Join(names, ", "), p.version, err)
	}
	for _, name := range names {
		if err := os.Rename(filepath.Join(temp, table[name].output(name)), p.program(name)); err != nil {
			return fmt.Errorf("publish %s: %w", name, err)
		}
	}
	return nil
}

// compile builds all named programs with one call, which uses every core to
// the end and compiles what they share only once.
func (p place) compile(ctx context.Context, compiler, output string, table map[string]program, names []string) error {
	var packages []string
	for _, name := range names {
		packages = append(packages, table[name].pkg)
	}
	progress := Watch(os.Stderr, names[0], p.countPackages(ctx, compiler, packages))
	defer progress.Stop()
	// -v names each package as its compilation begins.
	args := append([]string{"build", "-v", "-o", output + string(filepath.Separator)}, p.flags...)
	cmd := p.command(ctx, compiler, append(args, packages...)...)
	cmd.Stderr = progress
	err := cmd.Run()
	if ctx.Err() != nil {
		return fmt.Errorf("interrupted: %w; the next command goes on from here", ctx.Err())
	}
	if err != nil {
		return fmt.Errorf("%w in %s:\n%s\nIf a download failed, run the same command again: what was compiled is kept. If the disk is full, make room: df -h %s",
			err, p.source, progress.Complaints(), p.cache)
	}
	return nil
}

// command runs the compiler in the tool module.
func (p place) command(ctx context.Context, compiler string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, compiler, args...)
	cmd.Dir = p.source
	cmd.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false")
	return cmd
}

// countPackages is how many packages a build compiles at most; 0 if that is unknown.
func (p place) countPackages(ctx context.Context, compiler string, packages []string) int {
	args := append([]string{"list", "-deps"}, p.flags...)
	out, err := p.command(ctx, compiler, append(args, packages...)...).Output()
	if err != nil {
		return 0 // the build itself will say what is wrong
	}
	return bytes.Count(out, []byte("\n"))
}

// requiredVersion finds the version that a go.mod requires of a module.
func requiredVersion(mod []byte, module string) (string, error) {
	lines := bufio.NewScanner(bytes.NewReader(mod))
	for lines.Scan() {
		fields := strings.Fields(strings.TrimPrefix(strings.TrimSpace(lines.Text()), "require "))
		if len(fields) >= 2 && fields[0] == module && strings.HasPrefix(fields[1], "v") {
			return fields[1], nil
		}
	}
	if err := lines.Err(); err != nil {
		return "", err
	}
	return "", errors.New("no version of " + module + " is required")
}

// linkerFlags strips symbols and stamps the version, as a release build does:
// clients and the kubelet compare versions, and "v0.0.0-master" misleads them.
func linkerFlags(module toolModule, version string) string {
	flags := []string{"-s", "-w"}
	for _, variable := range module.versionVars {
		flags = append(flags, "-X", variable+"="+version)
	}
	// Sorted, so that the same flags give the same name in the cache.
	for _, variable := range slices.Sorted(maps.Keys(module.stamps)) {
		flags = append(flags, "-X", variable+"="+module.stamps[variable])
	}
	flags = append(flags, module.linker...)
	numbers := strings.Split(strings.TrimPrefix(version, "v"), ".")
	for _, pkg := range module.semverPackages {
		if len(numbers) >= 2 {
			flags = append(flags, "-X", pkg+".gitMajor="+numbers[0], "-X", pkg+".gitMinor="+numbers[1])
		}
	}
	return strings.Join(flags, " ")
}

// computeFingerprint is a short hash of all that decides what a build yields, but for
// the compiler: a new patch release of Go is no reason to build Kubernetes again.
func computeFingerprint(mod, sum, own []byte, flags []string) string {
	hash := sha256.New()
	for _, part := range [][]byte{mod, sum, own, []byte(strings.Join(flags, " ")), []byte(runtime.GOOS + "/" + runtime.GOARCH)} {
		_, _ = fmt.Fprintf(hash, "%d\n", len(part)) // a hash never fails to write
		_, _ = hash.Write(part)
	}
	return hex.EncodeToString(hash.Sum(nil))[:hashLength]
}
