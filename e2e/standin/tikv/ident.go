package tikv

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

const (
	identFile  = "store.json"
	regionFile = "regions.json"
	lockFile   = "LOCK"
)

// Ident says which store of which cluster a data directory is.
type Ident struct {
	ClusterID uint64 `json:"cluster_id"`
	StoreID   uint64 `json:"store_id"`
}

// dataDir is a locked data directory.
type dataDir struct {
	path string
	lock *os.File
}

// openDataDir makes and locks the directory: two stores on one directory are
// refused, as TiKV does.
func openDataDir(path string) (*dataDir, error) {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, fmt.Errorf("make data directory: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(path, lockFile), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open lock file: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s, maybe another instance uses it: %w", path, err), lock.Close())
	}
	return &dataDir{path: path, lock: lock}, nil
}

// close gives the lock back.
func (d *dataDir) close() error { return d.lock.Close() }

// read decodes a file; a missing one leaves the value as it is.
func (d *dataDir) read(name string, into any) error {
	text, err := os.ReadFile(filepath.Join(d.path, name))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	return nil
}

// write replaces a file as a whole, so that a kill leaves the old or the new.
func (d *dataDir) write(name string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	temporary := filepath.Join(d.path, name+".new")
	f, err := os.Create(temporary)
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if err := os.Rename(temporary, filepath.Join(d.path, name)); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}
