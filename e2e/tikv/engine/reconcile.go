package engine

import (
	"bytes"
	"fmt"
	"math"

	"github.com/pingcap/badger"
	"github.com/pingcap/badger/y"
	"github.com/pingcap/tidb/pkg/store/mockstore/unistore/tikv/mvcc"
)

// reconcile makes what is read from as the disk is, between two encoded keys. What
// is read from may have any older state of the range, as left by a peer that was
// here before. So of each key only versions that are newer than all it has are
// added, and a key that is not on disk is hidden.
func (e *Engine) reconcile(start, end []byte) error {
	w := &e.writer
	if err := w.flush(); err != nil {
		return err
	}
	var from, to []byte
	var err error
	if len(start) > 0 {
		if from, err = DecodeKey(start); err != nil {
			return err
		}
	}
	if len(end) > 0 {
		if to, err = DecodeKey(end); err != nil {
			return err
		}
	}
	old := e.readRange(from, to)
	defer old.close()
	var key []byte // the one that is being added
	var newest uint64
	lower, upper := keyBounds(dataSpace, start, end)
	err = scanKeys(e.disk, lower, upper, func(k, value []byte) error {
		c, err := changeOf(dataSpace, k[1:], value, false)
		if err != nil {
			return err
		}
		if key == nil || !bytes.Equal(key, c.key) {
			if err := old.hideBefore(c.key); err != nil {
				return err
			}
			key, newest = c.key, old.take(c.key)
		}
		if c.ts <= newest {
			return nil
		}
		return w.add(c)
	})
	if err != nil {
		return fmt.Errorf("reconcile a range: %w", err)
	}
	if err := old.hideBefore(nil); err != nil {
		return err
	}
	// Marks have one version each; one that is there already stays.
	lower, upper = keyBounds(markSpace, start, end)
	err = scanKeys(e.disk, lower, upper, func(k, value []byte) error {
		c, err := changeOf(markSpace, k[1:], value, false)
		if err != nil {
			return err
		}
		return w.add(c)
	})
	if err != nil {
		return fmt.Errorf("reconcile a range: %w", err)
	}
	return w.flush()
}

// readRange walks over the keys that can be read in a range.
type readRange struct {
	engine *Engine
	txn    *badger.Txn
	it     *badger.Iterator
	end    []byte
}

func (e *Engine) readRange(start, end []byte) *readRange {
	txn := e.Read.NewTransaction(false)
	txn.SetReadTS(math.MaxUint64)
	o := badger.DefaultIteratorOptions
	o.AllVersions = true // deleted ones, too
	if len(start) > 0 {
		o.StartKey = y.KeyWithTs(start, math.MaxUint64)
	}
	if len(end) > 0 {
		o.EndKey = y.KeyWithTs(end, math.MaxUint64)
	}
	r := &readRange{engine: e, txn: txn, it: txn.NewIterator(o), end: end}
	r.it.Seek(start)
	r.skipMarks()
	return r
}

func (r *readRange) close() {
	r.it.Close()
	r.txn.Discard()
}

// First bytes of TiDB's keys are m and t; marks are under the bytes after them.
func isMark(key []byte) bool { return len(key) > 0 && (key[0] == 'm'+1 || key[0] == 't'+1) }

func (r *readRange) skipMarks() {
	for r.isValid() && isMark(r.it.Item().Key()) {
		r.it.Next()
	}
}

func (r *readRange) isValid() bool {
	return r.it.Valid() && (len(r.end) == 0 || bytes.Compare(r.it.Item().Key(), r.end) < 0)
}

// next goes on to the next key, over the older versions of this one.
func (r *readRange) next() {
	key := r.it.Item().KeyCopy(nil)
	for r.isValid() && bytes.Equal(r.it.Item().Key(), key) {
		r.it.Next()
	}
	r.skipMarks()
}

// hideBefore hides all keys before one, and all that are left when it is nil.
func (r *readRange) hideBefore(key []byte) error {
	for r.isValid() && (key == nil || bytes.Compare(r.it.Item().Key(), key) < 0) {
		item := r.it.Item()
		if !item.IsDeleted() {
			last := change{key: item.KeyCopy(nil), ts: item.Version(), meta: mvcc.DBUserMeta(append([]byte{}, item.UserMeta()...))}
			if err := r.engine.writer.add(last.hidden()); err != nil {
				return err
			}
		}
		r.next()
	}
	return nil
}

// take is the newest version of a key, 0 when there is none, and goes on after it.
func (r *readRange) take(key []byte) (newest uint64) {
	if r.isValid() && bytes.Equal(r.it.Item().Key(), key) {
		newest = r.it.Item().Version()
		r.next()
	}
	return newest
}
