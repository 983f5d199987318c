package engine

import (
	"bytes"
	"fmt"

	"github.com/cockroachdb/pebble"
)

// collectChanges is how many deletions are committed together.
const collectChanges = 1000

// Collect takes from the disk what no reader at a timestamp or later reads:
// versions that are followed by another one before it, deleted keys, and marks. It
// may run beside commits. What is read from collects its own garbage.
func (e *Engine) Collect(safePoint uint64) error {
	view := e.disk.NewSnapshot()
	b := e.disk.NewBatch()
	flush := func(least uint32) error {
		if b.Count() < least || b.Empty() {
			return nil
		}
		if err := b.Commit(pebble.Sync); err != nil {
			return err
		}
		b = e.disk.NewBatch()
		return nil
	}
	var last []byte // the version before, if it is old
	var empty bool
	err := scanKeys(view, []byte{dataSpace}, []byte{dataSpace + 1}, func(k, value []byte) error {
		_, ts, err := splitVersion(k[1:])
		if err != nil {
			return err
		}
		same := len(last) == len(k) && bytes.Equal(last[:len(last)-tsLen], k[:len(k)-tsLen])
		old := ts <= safePoint
		if last != nil && ((same && old) || (!same && empty)) {
			if err := b.Delete(last, nil); err != nil {
				return err
			}
		}
		if !same {
			if err := flush(collectChanges); err != nil {
				return err
			}
		}
		if last = nil; old {
			last, empty = append([]byte{}, k...), len(value) <= tsLen
		}
		return nil
	})
	if err == nil && last != nil && empty {
		err = b.Delete(last, nil)
	}
	if err == nil {
		err = scanKeys(view, []byte{markSpace}, []byte{markSpace + 1}, func(k, _ []byte) error {
			_, ts, err := splitVersion(k[1:])
			if err != nil || ts >= safePoint {
				return err
			}
			if err := b.Delete(append([]byte{}, k...), nil); err != nil {
				return err
			}
			return flush(collectChanges)
		})
	}
	if err == nil {
		err = flush(0)
	}
	if closed := view.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("collect garbage: %w", err)
	}
	return nil
}
