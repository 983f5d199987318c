package binaries

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// CacheEnv names the environment variable that moves the cache directory.
const CacheEnv = "TIDB_GROUPS_CACHE"

// assetsEnv is where the well-known test binaries of controller-runtime are, on
// machines that have them.
const assetsEnv = "KUBEBUILDER_ASSETS"

// CacheDir returns the directory under which everything that is expensive to
// make is kept: $TIDB_GROUPS_CACHE, or tidb-groups below the user's cache
// directory. The directory need not exist yet.
func CacheDir() (string, error) {
	if dir := os.Getenv(CacheEnv); dir != "" {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return "", fmt.Errorf("resolve $%s: %w", CacheEnv, err)
		}
		return abs, nil
	}
	base, err := os.UserCacheDir()
	if err != nil {
		// No home directory, as in a bare container or under a service
		// manager: stay usable, apart per user.
		return filepath.Join(os.TempDir(), fmt.Sprintf("tidb-groups-%d", os.Getuid())), nil // the fallback is the answer
	}
	return filepath.Join(base, "tidb-groups"), nil
}

// Path returns the absolute path of the named program and builds it first when
// the cache does not have it. Building honours ctx. The error says what is
// missing: an unknown name, the Go compiler, the source tree, or a package.
//
// A program that $KUBEBUILDER_ASSETS holds under its name is used as it is.
func Path(ctx context.Context, name string) (string, error) {
	paths, err := Paths(ctx, name)
	if err != nil {
		return "", err
	}
	return paths[name], nil
}

// Dir returns a directory that holds every named program under its name, and
// builds first what the cache does not have. Programs of several tool modules
// are brought together as symbolic links. The directory may hold more than was
// asked for.
func Dir(ctx context.Context, names ...string) (string, error) {
	if len(names) == 0 {
		return "", errors.New("find programs: no name given")
	}
	found, err := Paths(ctx, names...)
	if err != nil {
		return "", err
	}
	dir := filepath.Dir(found[names[0]])
	together := true
	for _, path := range found {
		together = together && filepath.Dir(path) == dir
	}
	if together {
		return dir, nil
	}
	return linkTogether(found)
}

// Paths returns the absolute path of every named program, as [Path] does, and
// builds those that are missing, each tool module and edition with one call of the
// compiler.
func Paths(ctx context.Context, names ...string) (map[string]string, error) {
	table := knownPrograms()
	found := make(map[string]string, len(names))
	wanted := map[string][]string{} // build → names
	var builds []string             // in the order in which they are named first
	for _, name := range names {
		p, known := table[name]
		if !known {
			return nil, unknownProgramError(name)
		}
		if path := assetPath(name); path != "" {
			found[name] = path
			continue
		}
		build := p.module.buildName()
		if wanted[build] == nil {
			builds = append(builds, build)
		}
		if !slices.Contains(wanted[build], name) {
			wanted[build] = append(wanted[build], name)
		}
	}
	if len(wanted) == 0 {
		return found, nil
	}
	root, err := Root()
	if err != nil {
		return nil, err
	}
	for _, build := range builds {
		moduleNames := wanted[build]
		place, err := locateModule(root, table[moduleNames[0]].module)
		if err != nil {
			return nil, err
		}
		if err := place.buildMissing(ctx, table, moduleNames); err != nil {
			return nil, err
		}
		for _, name := range moduleNames {
			found[name] = place.program(name)
		}
	}
	return found, nil
}

// assetPath returns the program's path in $KUBEBUILDER_ASSETS, or "".
func assetPath(name string) string {
	dir := os.Getenv(assetsEnv)
	if dir == "" {
		return ""
	}
	path, err := filepath.Abs(filepath.Join(dir, name))
	if err != nil || !isExecutable(path) {
		return ""
	}
	return path
}

// linkTogether makes a directory of symbolic links to the given programs. Its
// name is derived from the targets, so that the same set is made only once.
func linkTogether(found map[string]string) (string, error) {
	cache, err := CacheDir()
	if err != nil {
		return "", err
	}
	names := make([]string, 0, len(found))
	for name := range found {
		names = append(names, name)
	}
	slices.Sort(names)
	sum := sha256.New()
	for _, name := range names {
		_, _ = fmt.Fprintf(sum, "%s=%s\n", name, found[name]) // a hash never fails to write
	}
	dir := filepath.Join(cache, "bin", "set-"+hex.EncodeToString(sum.Sum(nil))[:hashLength])
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", fmt.Errorf("create cache directory: %w", err)
	}
	temp, err := os.MkdirTemp(filepath.Dir(dir), "set-*.tmp")
	if err != nil {
		return "", fmt.Errorf("create directory of links: %w", err)
	}
	defer func() { _ = os.RemoveAll(temp) }() // gone after a successful rename
	for _, name := range names {
		if err := os.Symlink(found[name], filepath.Join(temp, name)); err != nil {
			return "", fmt.Errorf("link %s: %w", name, err)
		}
	}
	if err := os.Chmod(temp, 0o755); err != nil {
		return "", fmt.Errorf("open directory of links: %w", err)
	}
	if err := os.Rename(temp, dir); err != nil {
		// Another process was quicker with the very same links.
		if _, statErr := os.Stat(dir); statErr == nil {
			return dir, nil
		}
		return "", fmt.Errorf("publish directory of links: %w", err)
	}
	return dir, nil
}

func isExecutable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
}
