package images

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Binaries compiles main packages of this repository (paths from its root, for
// example ./operators/pdgroup) into static binaries, with one call of the go
// tool, and returns the directory that holds each under the last element of
// its package's path. An unchanged binary is not linked again.
func Binaries(ctx context.Context, root, cache string, packages ...string) (dir string, err error) {
	dir = filepath.Join(cache, "static")
	if err = os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("create directory for binaries: %w", err)
	}
	unlock, err := lock(filepath.Join(cache, "static.lock"))
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
	// grpcnotrace leaves out the tracing pages of gRPC: with their templates the
	// linker would have to keep every method of every type, a fifth of a binary.
	// Without the version control stamp: a commit that changes nothing in a
	// binary must not make a new image.
	args := append([]string{"build", "-trimpath", "-buildvcs=false", "-tags=grpcnotrace", "-ldflags=-s -w", "-o", dir + string(filepath.Separator)}, packages...)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=")
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err = cmd.Run(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", strings.Join(packages, " "), err, lastLines(output.String(), 40))
	}
	return dir, nil
}

// lock takes an exclusive lock on a file. It needs no clean-up after a crash:
// the kernel drops it with the process.
func lock(file string) (unlock func(), err error) {
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

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	return strings.Join(lines, "\n")
}
