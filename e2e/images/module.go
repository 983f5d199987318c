package images

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/tidb-groups/tidb-groups/shared/testkit/binaries"
)

// moduleEstimate is how long the first build of our TiKV takes on two cores, after
// TiDB, of which it shares most packages.
const moduleEstimate = time.Minute

// moduleBinary is where the binary of a module of its own is built.
func (r recipe) moduleBinary(cache string) string {
	return filepath.Join(cache, "modules", filepath.Base(r.pkg))
}

// buildModules compiles the main packages of those modules of this repository that
// are no part of the workspace: the requirements of a database and of the suite do
// not fit together. An unchanged binary is not linked again.
func buildModules(ctx context.Context, root, cache string, recipes []recipe) error {
	built := map[string]bool{}
	for _, r := range recipes {
		file := r.moduleBinary(cache)
		if r.module == "" || built[file] {
			continue
		}
		built[file] = true
		if err := buildModule(ctx, filepath.Join(root, r.module), file, r.pkg); err != nil {
			return err
		}
	}
	return nil
}

// buildModule compiles one main package to a file. The flags are those of TiDB's
// own build, so that both share what is compiled already.
func buildModule(ctx context.Context, module, file, pkg string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("create directory for binaries: %w", err)
	}
	unlock, err := lockFile(file + ".lock")
	if err != nil {
		return fmt.Errorf("lock %s: %w", file, err)
	}
	defer unlock()
	cmd := exec.CommandContext(ctx, "go", "build", "-v", "-trimpath", "-buildvcs=false",
		"-ldflags=-s -w -checklinkname=0", "-o", file, pkg)
	cmd.Dir = module
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off")
	progress := binaries.Watch(os.Stderr, filepath.Base(file), 0)
	cmd.Stderr = progress
	err = cmd.Run()
	progress.Stop()
	if ctx.Err() != nil {
		return fmt.Errorf("build %s: interrupted: %w; the next command goes on from here", filepath.Base(file), ctx.Err())
	}
	if err != nil {
		return fmt.Errorf("build %s: %w in %s:\n%s\nIf a download failed, run the same command again: what was compiled is kept. If the disk is full, make room: df -h %s",
			filepath.Base(file), err, module, progress.Complaints(), filepath.Dir(file))
	}
	return nil
}

// ListMissingBuilds returns the builds of modules of this repository that the images of sets
// need and the cache has never seen.
func ListMissingBuilds(sets ...string) ([]binaries.Build, error) {
	cache, err := binaries.CacheDir()
	if err != nil {
		return nil, err
	}
	var out []binaries.Build
	for _, r := range listRecipes() {
		if r.module == "" || !slices.Contains(sets, r.set) {
			continue
		}
		program := []string{filepath.Base(r.pkg)}
		listed := slices.ContainsFunc(out, func(b binaries.Build) bool { return slices.Equal(b.Programs, program) })
		if _, err := os.Stat(r.moduleBinary(cache)); err != nil && !listed {
			out = append(out, binaries.Build{Programs: program, Estimate: moduleEstimate})
		}
	}
	return out, nil
}

// BuildModules builds what [Modules] lists, and what has changed since.
func BuildModules(ctx context.Context, sets ...string) error {
	root, err := binaries.Root()
	if err != nil {
		return err
	}
	cache, err := binaries.CacheDir()
	if err != nil {
		return err
	}
	return buildModules(ctx, root, cache, slices.DeleteFunc(listRecipes(), func(r recipe) bool { return !slices.Contains(sets, r.set) }))
}
