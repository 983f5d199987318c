package engine

import "github.com/cockroachdb/pebble/vfs"

// newUnsyncedFS is the file system without syncs. Pebble then writes its log before a
// commit returns, as it does for a synced one, and leaves the rest to the kernel.
func newUnsyncedFS() vfs.FS { return unsyncedFS{vfs.Default} }

type unsyncedFS struct{ vfs.FS }

func (fs unsyncedFS) Create(name string) (vfs.File, error) { return wrapFile(fs.FS.Create(name)) }

func (fs unsyncedFS) ReuseForWrite(old, name string) (vfs.File, error) {
	return wrapFile(fs.FS.ReuseForWrite(old, name))
}

func (fs unsyncedFS) OpenReadWrite(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	return wrapFile(fs.FS.OpenReadWrite(name, opts...))
}

func (fs unsyncedFS) OpenDir(name string) (vfs.File, error) { return wrapFile(fs.FS.OpenDir(name)) }

type unsyncedFile struct{ vfs.File }

func wrapFile(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return unsyncedFile{f}, nil
}

func (unsyncedFile) Sync() error                             { return nil }
func (unsyncedFile) SyncData() error                         { return nil }
func (unsyncedFile) SyncTo(int64) (fullSync bool, err error) { return true, nil }
