// Package engine keeps what a store has. All of it, the Raft logs included, is in
// one key-value store (pebble), written in batches that are whole or not there
// after the process was killed. What TiDB's storage engine reads from is made of
// it at start and kept beside it: committed versions in badger, whose files are
// thrown away at start, and locks in memory.
//
// Nothing is synced to the disk: a killed process loses nothing, a machine that
// loses power may.
package engine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cockroachdb/pebble"
	"github.com/pingcap/badger"
	"github.com/pingcap/tidb/pkg/store/mockstore/unistore/lockstore"
)

// Sizes are small: many stores share one machine.
const (
	memTableSize   = 4 << 20
	blockCacheSize = 16 << 20
	readTableSize  = 32 << 20
	lockArenaSize  = 1 << 20
	neverCompacted = 1 << 30 // a number of tables
)

// Engine is the data of one store. One goroutine at a time may commit.
type Engine struct {
	disk  *pebble.DB
	Read  *badger.DB
	Locks *lockstore.MemStore

	writer readWriter // of Read
}

// Open opens the data in a directory and makes what is read from.
func Open(dir string) (*Engine, error) {
	cache := pebble.NewCache(blockCacheSize)
	defer cache.Unref()
	disk, err := pebble.Open(filepath.Join(dir, "db"), &pebble.Options{
		FS: newUnsyncedFS(), Cache: cache, MemTableSize: memTableSize, MaxConcurrentCompactions: func() int { return 1 },
		Logger: quiet{}, DisableWAL: false,
	})
	if err != nil {
		return nil, fmt.Errorf("open the data in %s: %w", dir, err)
	}
	e := &Engine{disk: disk, Locks: lockstore.NewMemStore(lockArenaSize)}
	if e.Read, err = openRead(filepath.Join(dir, "read")); err != nil {
		return nil, errors.Join(err, disk.Close())
	}
	e.writer.db = e.Read
	if err := e.load(); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

// Close ends all use of the engine. What was committed is there at the next Open
// without it, too.
func (e *Engine) Close() error {
	if err := errors.Join(e.Read.Close(), e.disk.Close()); err != nil {
		return fmt.Errorf("close the data: %w", err)
	}
	return nil
}

func openRead(dir string) (*badger.DB, error) {
	if err := os.RemoveAll(dir); err != nil {
		return nil, fmt.Errorf("empty the read store: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make the read store: %w", err)
	}
	o := badger.DefaultOptions
	o.Dir, o.ValueDir = dir, dir
	o.ManagedTxns, o.VolatileMode = true, true
	o.SyncWrites, o.CompactL0WhenClose = false, false
	o.ValueThreshold = 0 // values stay with their keys
	o.MaxMemTableSize, o.NumMemtables = readTableSize, 2
	// Tables get an index of tries: with one of hashes, badger finds the newest version of
	// some keys whatever the timestamp that is asked for.
	o.TableBuilderOptions.SuRFStartLevel = 0
	// Tables are never compacted: each one that a compaction makes after its first loses all
	// but the newest version of a key (badger's table builder, when it is used again, lacks
	// the byte that keeps the offset of old versions from being 0, which means none).
	o.NumLevelZeroTables, o.NumLevelZeroTablesStall = neverCompacted, neverCompacted+1
	o.NumCompactors = 1
	o.MaxBlockCacheSize, o.MaxIndexCacheSize = 0, 0 // files are mapped
	db, err := badger.Open(o)
	if err != nil {
		return nil, fmt.Errorf("open the read store: %w", err)
	}
	return db, nil
}

// load makes the read store and the locks of what is on disk.
func (e *Engine) load() error {
	for _, space := range []byte{dataSpace, markSpace, lockSpace} {
		err := scanKeys(e.disk, []byte{space}, []byte{space + 1}, func(key, value []byte) error {
			c, err := changeOf(space, key[1:], value, false)
			if err != nil {
				return err
			}
			if space == lockSpace {
				e.Locks.Put(c.key, c.value)
				return nil
			}
			return e.writer.add(c)
		})
		if err != nil {
			return fmt.Errorf("load the data: %w", err)
		}
	}
	return e.writer.flush()
}

// scanKeys calls fn for each key in [lower, upper). Key and value are valid during
// the call only.
func scanKeys(r pebble.Reader, lower, upper []byte, fn func(key, value []byte) error) error {
	it, err := r.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return fmt.Errorf("scan: %w", err)
	}
	for it.First(); it.Valid(); it.Next() {
		if err := fn(it.Key(), it.Value()); err != nil {
			return errors.Join(err, it.Close())
		}
	}
	if err := it.Close(); err != nil {
		return fmt.Errorf("scan: %w", err)
	}
	return nil
}

// Get reads something that is neither data, mark nor lock; nil when it is not there.
func (e *Engine) Get(key []byte) ([]byte, error) {
	value, closer, err := e.disk.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %q: %w", key, err)
	}
	out := append([]byte{}, value...)
	if err := closer.Close(); err != nil {
		return nil, fmt.Errorf("read %q: %w", key, err)
	}
	return out, nil
}

// Entries calls fn for each stored entry of a region's Raft log, in order.
func (e *Engine) Entries(region uint64, fn func(entry []byte) error) error {
	return scanKeys(e.disk, RaftKey(region, Log), RaftKey(region, Log+1), func(_, value []byte) error { return fn(value) })
}

// Metas calls fn for the Meta of each region.
func (e *Engine) Metas(fn func(value []byte) error) error {
	return scanKeys(e.disk, []byte{raftSpace}, []byte{raftSpace + 1}, func(key, value []byte) error {
		if len(key) == 1+8+1 && key[9] == Meta {
			return fn(value)
		}
		return nil
	})
}

type quiet struct{}

func (quiet) Infof(string, ...any)  {}
func (quiet) Errorf(string, ...any) {}
func (quiet) Fatalf(format string, args ...any) {
	panic(fmt.Sprintf(format, args...))
}
