package engine

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble"
	"github.com/pingcap/badger"
	"github.com/pingcap/badger/y"
	"github.com/pingcap/tidb/pkg/store/mockstore/unistore/lockstore"
	"github.com/pingcap/tidb/pkg/store/mockstore/unistore/tikv/mvcc"
)

// Batch collects changes that are committed together.
type Batch struct {
	engine  *Engine
	disk    *pebble.Batch
	changes []change // of what is read from, in their order
	// Bytes is the size of the data that was put.
	Bytes int
}

// anySpace is the space of a change that makes a range as it is on disk. Its key
// and value are the encoded bounds.
const anySpace = 0

// change is a change of what is read from.
type change struct {
	space  byte
	key    []byte // the user's key; of a mark, the key that TiDB's engine looks for
	value  []byte
	meta   []byte
	ts     uint64
	delete bool
}

// NewBatch starts a batch.
func (e *Engine) NewBatch() *Batch { return &Batch{engine: e, disk: e.disk.NewBatch()} }

// changeOf reads a key without the byte of its space.
func changeOf(space byte, key, value []byte, remove bool) (change, error) {
	c := change{space: space, delete: remove}
	var err error
	if space == lockSpace {
		c.key, err = DecodeKey(key)
		c.value = append([]byte{}, value...)
		return c, err
	}
	c.key, c.ts, err = splitVersion(key)
	if err != nil {
		return change{}, err
	}
	if remove {
		value = make([]byte, tsLen)
	}
	if len(value) < tsLen {
		return change{}, fmt.Errorf("the value of %x is too short", key)
	}
	other := binary.BigEndian.Uint64(value)
	if space == markSpace {
		c.key = mvcc.EncodeExtraTxnStatusKey(c.key, c.ts)
		c.meta = mvcc.NewDBUserMeta(c.ts, other)
		return c, nil
	}
	c.meta = mvcc.NewDBUserMeta(other, c.ts)
	c.value = append([]byte{}, value[tsLen:]...)
	return c, nil
}

// hidden is the change that hides a key of which this is the newest version.
func (c *change) hidden() change {
	return change{space: dataSpace, key: c.key, meta: c.meta, ts: c.ts + 1, delete: true}
}

// DataValue is a value of DataCF.
func DataValue(startTS uint64, value []byte) []byte {
	return append(binary.BigEndian.AppendUint64(nil, startTS), value...)
}

// MarkValue is a value of MarkCF: commitTS is 0 for a rollback.
func MarkValue(commitTS uint64) []byte { return binary.BigEndian.AppendUint64(nil, commitTS) }

// Put writes a key of a column family.
func (b *Batch) Put(cf string, key, value []byte) error {
	s, err := findSpace(cf)
	if err != nil {
		return err
	}
	return b.put(s, key, value)
}

func (b *Batch) put(s byte, key, value []byte) error {
	c, err := changeOf(s, key, value, false)
	if err != nil {
		return err
	}
	b.changes = append(b.changes, c)
	b.Bytes += len(key) + len(value)
	return b.disk.Set(joinKey(s, key), value, nil)
}

// DeleteLock removes a lock.
func (b *Batch) DeleteLock(key []byte) error {
	c, err := changeOf(lockSpace, key, nil, true)
	if err != nil {
		return err
	}
	b.changes = append(b.changes, c)
	return b.disk.Delete(joinKey(lockSpace, key), nil)
}

// Remove takes all data, marks and locks between two encoded keys away, which no
// region here has any more; an empty end is the end of all keys. What is read from
// keeps them: nothing is read there until Replace.
func (b *Batch) Remove(start, end []byte) error {
	lower, upper := keyBounds(lockSpace, start, end)
	err := scanKeys(b.engine.disk, lower, upper, func(key, _ []byte) error {
		c, err := changeOf(lockSpace, key[1:], nil, true)
		b.changes = append(b.changes, c)
		return err
	})
	if err != nil {
		return fmt.Errorf("remove a range: %w", err)
	}
	for _, s := range spaces {
		lower, upper := keyBounds(s, start, end)
		if err := b.disk.DeleteRange(lower, upper, nil); err != nil {
			return fmt.Errorf("remove a range: %w", err)
		}
	}
	return nil
}

// Replace puts what View.Dump packed in place of what a range had.
func (b *Batch) Replace(start, end, dump []byte) error {
	if err := b.Remove(start, end); err != nil {
		return err
	}
	for len(dump) > 0 {
		var parts [2][]byte
		for i := range parts {
			n, used := binary.Uvarint(dump)
			if used <= 0 || uint64(len(dump)-used) < n {
				return fmt.Errorf("replace a range: %d bytes are left that are no pair", len(dump))
			}
			parts[i], dump = dump[used:used+int(n)], dump[used+int(n):]
		}
		key, value := parts[0], parts[1]
		if len(key) == 0 {
			return errors.New("replace a range: an empty key")
		}
		if err := b.disk.Set(key, value, nil); err != nil {
			return fmt.Errorf("replace a range: %w", err)
		}
		if key[0] == lockSpace {
			c, err := changeOf(lockSpace, key[1:], value, false)
			if err != nil {
				return fmt.Errorf("replace a range: %w", err)
			}
			b.changes = append(b.changes, c)
		}
	}
	b.changes = append(b.changes, change{space: anySpace, key: start, value: end})
	return nil
}

// DeleteRange deletes all data, marks and locks between two encoded keys from a
// region. What this batch itself put there before must have been committed.
func (b *Batch) DeleteRange(start, end []byte) error {
	lower, upper := keyBounds(dataSpace, start, end)
	var last *change
	hide := func() {
		if last != nil {
			b.changes = append(b.changes, last.hidden())
		}
	}
	err := scanKeys(b.engine.disk, lower, upper, func(key, _ []byte) error {
		c, err := changeOf(dataSpace, key[1:], nil, true)
		if last == nil || !bytes.Equal(last.key, c.key) {
			hide()
		}
		last = &c
		return err
	})
	if err != nil {
		return fmt.Errorf("delete a range: %w", err)
	}
	hide()
	return b.Remove(start, end)
}

// Set writes something that is neither data, mark nor lock.
func (b *Batch) Set(key, value []byte) error { return b.disk.Set(key, value, nil) }

// Delete removes something that is neither data, mark nor lock.
func (b *Batch) Delete(key []byte) error { return b.disk.Delete(key, nil) }

// Unset removes what Set wrote in [start, end).
func (b *Batch) Unset(start, end []byte) error { return b.disk.DeleteRange(start, end, nil) }

// IsEmpty says that there is nothing to commit.
func (b *Batch) IsEmpty() bool { return b.disk.Empty() }

// Commit makes the batch last, then shows it to readers: data before the locks,
// so that a reader who finds no lock finds the data. The batch is empty
// afterwards and can be used again.
func (b *Batch) Commit() error {
	if b.disk.Empty() {
		return nil
	}
	if err := b.disk.Commit(pebble.Sync); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	w := &b.engine.writer
	for _, c := range b.changes {
		var err error
		switch c.space {
		case lockSpace:
		case anySpace:
			err = b.engine.reconcile(c.key, c.value)
		default:
			err = w.add(c)
		}
		if err != nil {
			return err
		}
	}
	if err := w.flush(); err != nil {
		return err
	}
	hint := new(lockstore.Hint)
	for _, c := range b.changes {
		switch {
		case c.space != lockSpace:
		case c.delete:
			b.engine.Locks.DeleteWithHint(c.key, hint)
		default:
			b.engine.Locks.PutWithHint(c.key, c.value, hint)
		}
	}
	b.changes, b.Bytes = nil, 0
	if err := b.disk.Close(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	b.disk = b.engine.disk.NewBatch()
	return nil
}

// Limits of a transaction of badger, far below what it takes.
const (
	txnBytes   = 1 << 20
	txnChanges = 1000
)

// pendingTxns is how many of the last transactions may not be in badger's memory table
// yet, when one is committed: badger merges one while the next one waits.
const pendingTxns = 2

// readWriter writes changes to the read store in transactions. A transaction holds
// only one version of a key. Versions of a key must be written in ascending order
// and only once: badger drops a version that is not newer than what its memory
// table has, and takes the first version that it finds in its newest table.
//
// A key that two pending transactions write loses its older versions when badger reads
// or flushes its memory table at that moment. So transactions that write nothing of
// meaning push the earlier one out first.
type readWriter struct {
	db      *badger.DB
	pending [pendingTxns]map[string]struct{} // the keys of the last transactions, the last one first
	pushed  uint64

	keys    map[string]struct{}
	changes []change
	bytes   int
}

func (w *readWriter) add(c change) error {
	if _, again := w.keys[string(c.key)]; again || w.bytes > txnBytes || len(w.changes) >= txnChanges {
		if err := w.flush(); err != nil {
			return err
		}
	}
	if w.keys == nil {
		w.keys = map[string]struct{}{}
	}
	w.keys[string(c.key)] = struct{}{}
	w.changes = append(w.changes, c)
	w.bytes += len(c.key) + len(c.value)
	return nil
}

func (w *readWriter) flush() error {
	if len(w.changes) == 0 {
		return nil
	}
	for w.writesPending() {
		w.pushed++
		if err := w.commit([]change{{key: []byte{0}, ts: w.pushed, delete: true}}); err != nil {
			return err
		}
		w.shift(nil)
	}
	if err := w.commit(w.changes); err != nil {
		return err
	}
	w.shift(w.keys)
	w.keys, w.changes, w.bytes = nil, nil, 0
	return nil
}

// writesPending tells whether a key that is to be written is in a pending transaction.
func (w *readWriter) writesPending() bool {
	for _, keys := range w.pending {
		for key := range keys {
			if _, again := w.keys[key]; again {
				return true
			}
		}
	}
	return false
}

func (w *readWriter) shift(keys map[string]struct{}) {
	copy(w.pending[1:], w.pending[:])
	w.pending[0] = keys
}

func (w *readWriter) commit(changes []change) error {
	err := w.db.Update(func(txn *badger.Txn) error {
		for _, c := range changes {
			entry := &badger.Entry{Key: y.KeyWithTs(c.key, c.ts), Value: c.value, UserMeta: c.meta}
			if c.delete {
				entry.SetDelete()
			}
			if err := txn.SetEntry(entry); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("write to the read store: %w", err)
	}
	return nil
}
