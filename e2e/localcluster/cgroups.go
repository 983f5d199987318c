package localcluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// cgroupParent is the control group, in every hierarchy, below which all
// containers of the cluster live.
const cgroupParent = "/tidb-groups-local"

func nodeCgroup(node string) string { return cgroupParent + "/" + node }

// hierarchy is one mounted tree of control groups.
type hierarchy struct {
	mount string
	// v2 is the unified hierarchy.
	v2 bool
	// cpuset of version 1 needs its two settings copied before it takes a process.
	cpuset bool
}

// parseHierarchies reads them from the content of /proc/self/mountinfo.
func parseHierarchies(mountinfo string) []hierarchy {
	var found []hierarchy
	for line := range strings.Lines(mountinfo) {
		before, after, ok := strings.Cut(strings.TrimSpace(line), " - ")
		fields, kind := strings.Fields(before), strings.Fields(after)
		if !ok || len(fields) < 5 || len(kind) < 3 {
			continue
		}
		switch kind[0] {
		case "cgroup":
			options := strings.Split(kind[2], ",")
			found = append(found, hierarchy{mount: unescapePath(fields[4]), cpuset: slices.Contains(options, "cpuset")})
		case "cgroup2":
			found = append(found, hierarchy{mount: unescapePath(fields[4]), v2: true})
		}
	}
	return found
}

func mountedHierarchies() ([]hierarchy, error) {
	content, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("list mounts: %w", err)
	}
	found := parseHierarchies(string(content))
	if len(found) == 0 {
		return nil, errors.New("find control groups: no cgroup file system is mounted below /sys/fs/cgroup")
	}
	return found, nil
}

// createCgroups makes the control group of a node in every hierarchy: the
// kubelet wants its root to exist.
func createCgroups(node string) error {
	all, err := mountedHierarchies()
	if err != nil {
		return err
	}
	for _, h := range all {
		parent := h.mount
		for _, name := range []string{cgroupParent, node} {
			if h.v2 {
				if err := passControllers(parent); err != nil {
					return fmt.Errorf("prepare control group %s: %w", parent, err)
				}
			}
			dir := filepath.Join(parent, name)
			if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
				return fmt.Errorf("create control group: %w", err)
			}
			if h.cpuset {
				if err := copyCpuset(parent, dir); err != nil {
					return fmt.Errorf("prepare control group %s: %w", dir, err)
				}
			}
			parent = dir
		}
		if h.v2 {
			if err := passControllers(parent); err != nil {
				return fmt.Errorf("prepare control group %s: %w", parent, err)
			}
		}
	}
	return nil
}

// passControllers hands every controller of a version 2 group to its children.
func passControllers(dir string) error {
	controllers, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return err
	}
	var errs []error
	for _, c := range strings.Fields(string(controllers)) {
		// One at a time: a single one that is refused must not cost the others.
		errs = append(errs, os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+c), 0o644))
	}
	if len(errs) > 0 && !slices.Contains(errs, nil) {
		return errors.Join(errs...)
	}
	return nil
}

func copyCpuset(from, to string) error {
	for _, f := range []string{"cpuset.cpus", "cpuset.mems"} {
		value, err := os.ReadFile(filepath.Join(from, f))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, f), value, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// removeCgroups deletes a control group and all below it in every hierarchy.
// Its processes must have ended; the kernel may take a moment to notice.
func removeCgroups(ctx context.Context, path string) error {
	all, err := mountedHierarchies()
	if err != nil {
		return err
	}
	for _, h := range all {
		dir := filepath.Join(h.mount, path)
		err := pollUntilDone(ctx, 10*time.Second, func(context.Context) (bool, error) {
			err := removeTree(dir)
			return err == nil, err
		})
		if err != nil {
			return fmt.Errorf("remove control group %s: %w", dir, err)
		}
	}
	return nil
}

// removeTree removes directories only, children first: the files in a control
// group cannot be removed and go with it.
func removeTree(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := removeTree(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
