package images

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tidb-groups/tidb-groups/shared/testkit/binaries"
)

// versionVariable is the environment variable with the version that the operators of
// an image tell when they are asked (--version). Images that go elsewhere have one; for
// those of this machine a commit that changes nothing in a binary makes no new image.
const versionVariable = "TIDB_GROUPS_VERSION"

// CompileBinaries compiles main packages of this repository (paths from its root, for
// example ./operators/pdgroup) into static binaries and returns the directory that
// holds each under the last element of its package's path. Each is compiled in its own
// module, without go.work, as it is tested: there the requirements of other modules
// would choose newer dependencies for it. An unchanged binary is not linked again.
func CompileBinaries(ctx context.Context, root, cache string, packages ...string) (dir string, err error) {
	dir = filepath.Join(cache, "static")
	if err = os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("create directory for binaries: %w", err)
	}
	unlock, err := lockFile(filepath.Join(cache, "static.lock"))
	if err != nil {
		return "", fmt.Errorf("lock directory for binaries: %w", err)
	}
	defer unlock()
	names := map[string]string{}
	for _, p := range packages {
		name := path.Base(p)
		if other, taken := names[name]; taken {
			return "", fmt.Errorf("build %s: %s would get the same file name", p, other)
		}
		names[name] = p
		if _, err = os.Stat(filepath.Join(root, p)); err != nil {
			return "", fmt.Errorf("find main package %s: %w", p, err)
		}
	}
	return dir, compilePackages(ctx, root, Target{Dir: dir, Version: os.Getenv(versionVariable)}, packages)
}

// Target says what programs are compiled as, and where they go.
type Target struct {
	// Dir that holds each program under the last element of its package's path.
	Dir string
	// Version that operators tell when they are asked; empty for none.
	Version string
	// Arch of the machine that runs them, as Go names it; empty for this one.
	Arch string
}

// compilePackages builds main packages of this repository, each in its own module.
func compilePackages(ctx context.Context, root string, t Target, packages []string) error {
	for _, m := range modulesOf(packages) {
		cmd := exec.CommandContext(ctx, "go", buildArgs(t.Dir, t.Version, m.packages)...)
		cmd.Dir = filepath.Join(root, m.dir)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off")
		if t.Arch != "" {
			cmd.Env = append(cmd.Env, "GOOS=linux", "GOARCH="+t.Arch)
		}
		progress := binaries.Watch(os.Stderr, strings.TrimSpace("programs of "+m.dir+" "+t.Arch), 0)
		cmd.Stderr = progress
		err := cmd.Run()
		progress.Stop()
		if err != nil {
			return fmt.Errorf("build %s of %s: %w\n%s", strings.Join(m.packages, " "), m.dir, err, progress.Complaints())
		}
	}
	return nil
}

// buildArgs are the arguments of the go tool that compile packages into a directory.
func buildArgs(dir, version string, packages []string) []string {
	ldflags := "-s -w"
	if version != "" {
		ldflags += " -X github.com/tidb-groups/tidb-groups/shared/operator.version=" + version
	}
	// grpcnotrace leaves out the tracing pages of gRPC: with their templates the
	// linker would have to keep every method of every type, a fifth of a binary.
	// Without the version control stamp: see versionVariable.
	return append([]string{"build", "-v", "-trimpath", "-buildvcs=false", "-tags=grpcnotrace", "-ldflags=" + ldflags, "-o", dir + string(filepath.Separator)}, packages...)
}

// packagesOf are packages of one module, by their paths from its directory.
type packagesOf struct {
	dir      string
	packages []string
}

// modulesOf groups packages by the modules that they are in, which are the directories
// at the root of the repository.
func modulesOf(packages []string) []packagesOf {
	var out []packagesOf
	for _, p := range packages {
		dir, rest, _ := strings.Cut(path.Clean(p), "/")
		at := slices.IndexFunc(out, func(m packagesOf) bool { return m.dir == dir })
		if at < 0 {
			at, out = len(out), append(out, packagesOf{dir: dir})
		}
		out[at].packages = append(out[at].packages, "./"+rest)
	}
	return out
}

// lockFile takes an exclusive lock on a file. It needs no clean-up after a crash:
// the kernel drops it with the process.
func lockFile(file string) (unlock func(), err error) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		_ = f.Close() // the lock's error is the one to tell
		return nil, err
	}
	return func() { _ = f.Close() }, nil // closing drops the lock
}
