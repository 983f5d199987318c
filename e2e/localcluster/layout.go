package localcluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// layout knows where everything lies below the state directory.
type layout struct{ root string }

// markFile in the state directory says that this package made it; without it
// nothing is ever deleted.
const markFile = ".tidb-groups-local"

func (l layout) mark() string                   { return filepath.Join(l.root, markFile) }
func (l layout) kubeconfig() string             { return filepath.Join(l.root, "kubeconfig") }
func (l layout) tools() string                  { return filepath.Join(l.root, "bin") }
func (l layout) pki(name string) string         { return filepath.Join(l.root, "pki", name) }
func (l layout) config(name string) string      { return filepath.Join(l.root, "config", name) }
func (l layout) logFile(process string) string  { return filepath.Join(l.root, "logs", process+".log") }
func (l layout) pidFile(process string) string  { return filepath.Join(l.root, "pids", process+".json") }
func (l layout) etcd() string                   { return filepath.Join(l.root, "etcd") }
func (l layout) volumes() string                { return filepath.Join(l.root, "volumes") }
func (l layout) ipam() string                   { return filepath.Join(l.root, "ipam") }
func (l layout) sysctls() string                { return filepath.Join(l.root, "sysctls.json") }
func (l layout) node(name string) string        { return filepath.Join(l.root, "nodes", name) }
func (l layout) nodeFile(name, f string) string { return filepath.Join(l.node(name), f) }
func (l layout) socket(node string) string      { return l.nodeFile(node, "run/containerd.sock") }

// create makes the state directory, and refuses one that holds something else.
func (l layout) create() error {
	if _, err := os.Stat(l.mark()); err == nil {
		return nil
	}
	entries, err := os.ReadDir(l.root)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read state directory: %w", err)
	}
	if len(entries) > 0 {
		return fmt.Errorf("state directory %s is not empty and was not made by this program; choose another one with --dir or $%s", l.root, DirEnv)
	}
	// The directory appears together with its mark: one without would belong to
	// no cluster if this process were killed in between.
	if err := os.MkdirAll(l.unborn(), 0o755); err != nil {
		return fmt.Errorf("create state directory: %w", err)
	}
	text := "State of a tidb-groups local cluster. Remove it with: localcluster down\n"
	if err := os.WriteFile(filepath.Join(l.unborn(), markFile), []byte(text), 0o644); err != nil {
		return fmt.Errorf("mark state directory: %w", err)
	}
	if err := os.Rename(l.unborn(), l.root); err != nil {
		return fmt.Errorf("publish state directory: %w", err)
	}
	return nil
}

// linkTool gives a program its plain name below the state directory, for people.
func (l layout) linkTool(name, target string) error {
	link := filepath.Join(l.tools(), name)
	if now, err := os.Readlink(link); err == nil && now == target {
		return nil
	}
	if err := os.MkdirAll(l.tools(), 0o755); err != nil {
		return fmt.Errorf("create directory of tools: %w", err)
	}
	if err := os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("replace link to %s: %w", name, err)
	}
	if err := os.Symlink(target, link); err != nil {
		return fmt.Errorf("link %s: %w", name, err)
	}
	return nil
}

// unborn is the state directory before it has its name.
func (l layout) unborn() string { return l.root + ".new" }

// remove deletes the state directory. It must be free of mounts.
func (l layout) remove() error {
	if err := os.RemoveAll(l.unborn()); err != nil {
		return fmt.Errorf("remove unfinished state directory: %w", err)
	}
	if _, err := os.Stat(l.mark()); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return fmt.Errorf("check state directory: %w", err)
	}
	entries, err := os.ReadDir(l.root)
	if err != nil {
		return fmt.Errorf("read state directory: %w", err)
	}
	// The mark goes last: a removal that is interrupted can be repeated.
	for _, e := range entries {
		if e.Name() == markFile {
			continue
		}
		if err := os.RemoveAll(filepath.Join(l.root, e.Name())); err != nil {
			return fmt.Errorf("remove state: %w", err)
		}
	}
	if err := os.RemoveAll(l.root); err != nil {
		return fmt.Errorf("remove state directory: %w", err)
	}
	return nil
}

// writeFile writes a file with its parent directories, atomically, and leaves
// a file alone that already has the content.
func writeFile(file string, content []byte, mode fs.FileMode) error {
	if old, err := os.ReadFile(file); err == nil && string(old) == string(content) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("create directory: %w", err)
	}
	temp := file + ".new"
	if err := os.WriteFile(temp, content, mode); err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	if err := os.Rename(temp, file); err != nil {
		return fmt.Errorf("publish %s: %w", file, err)
	}
	return nil
}
