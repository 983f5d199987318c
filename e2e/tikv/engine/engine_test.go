package engine

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pingcap/badger"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func open(t *testing.T, dir string) *Engine {
	t.Helper()
	e, err := Open(dir)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return e
}

// reopen opens a directory, does something, and closes it.
func reopen(t *testing.T, dir string, do func(e *Engine)) {
	t.Helper()
	e, err := Open(dir)
	require.NoError(t, err)
	do(e)
	require.NoError(t, e.Close())
}

func commit(t *testing.T, e *Engine, do func(b *Batch)) {
	t.Helper()
	b := e.NewBatch()
	do(b)
	require.NoError(t, b.Commit())
}

func put(t *testing.T, e *Engine, key string, ts uint64, value string) {
	t.Helper()
	commit(t, e, func(b *Batch) {
		require.NoError(t, b.Put(DataCF, VersionedKey([]byte(key), ts), DataValue(ts-1, []byte(value))))
	})
}

// get is what a reader at a timestamp finds, "" for nothing.
func get(t *testing.T, e *Engine, key string, ts uint64) string {
	t.Helper()
	txn := e.Read.NewTransaction(false)
	defer txn.Discard()
	txn.SetReadTS(ts)
	item, err := txn.Get([]byte(key))
	if errors.Is(err, badger.ErrKeyNotFound) {
		return ""
	}
	require.NoError(t, err)
	value, err := item.ValueCopy(nil)
	require.NoError(t, err)
	return string(value)
}

func dump(t *testing.T, e *Engine) []byte {
	t.Helper()
	view := e.View()
	out, err := view.Dump(nil, nil)
	require.NoError(t, err)
	require.NoError(t, view.Close())
	return out
}

func checksum(t *testing.T, e *Engine) string {
	t.Helper()
	view := e.View()
	sum, err := view.Checksum(nil, nil)
	require.NoError(t, err)
	require.NoError(t, view.Close())
	return sum
}

// copyDir is the directory as a process that is killed now leaves it.
func copyDir(t *testing.T, dir string) string {
	t.Helper()
	out := t.TempDir()
	require.NoError(t, os.CopyFS(out, os.DirFS(dir)))
	require.NoError(t, os.RemoveAll(filepath.Join(out, "db", "LOCK")))
	return out
}

func TestCommittedDataSurvivesAKill(t *testing.T) {
	dir := t.TempDir()
	e := open(t, dir)
	for i := range 100 {
		commit(t, e, func(b *Batch) {
			key := fmt.Appendf(nil, "t%d", i)
			require.NoError(t, b.Put(DataCF, VersionedKey(key, 5), DataValue(4, []byte("v"))))
			require.NoError(t, b.Put(LockCF, EncodeKey(key), []byte("lock")))
			require.NoError(t, b.Put(MarkCF, VersionedKey(key, 3), MarkValue(0)))
			require.NoError(t, b.Set(StoreKey("x"), fmt.Append(nil, i)))
		})
		if i%10 != 0 {
			continue
		}
		reopen(t, copyDir(t, dir), func(other *Engine) {
			assert.Equal(t, "v", get(t, other, fmt.Sprintf("t%d", i), 5))
			assert.Empty(t, get(t, other, fmt.Sprintf("t%d", i), 4))
			assert.Equal(t, []byte("lock"), other.Locks.Get(fmt.Appendf(nil, "t%d", i), nil))
			value, err := other.Get(StoreKey("x"))
			require.NoError(t, err)
			assert.Equal(t, fmt.Sprint(i), string(value))
			assert.Equal(t, checksum(t, e), checksum(t, other))
		})
	}
}

// fill makes the read store begin another memory table, and more.
func fill(t *testing.T, e *Engine, ts uint64) {
	t.Helper()
	value := bytes.Repeat([]byte("x"), 1<<18)
	for i := range 2 * readTableSize / len(value) {
		put(t, e, fmt.Sprintf("ta%d", i), ts, string(value))
	}
}

func TestADeletedRangeCanBeRestored(t *testing.T) {
	for name, between := range map[string]func(e *Engine){
		"at once":              func(*Engine) {},
		"after more was there": func(e *Engine) { fill(t, e, 100) },
	} {
		t.Run(name, func(t *testing.T) {
			source, e := open(t, t.TempDir()), open(t, t.TempDir())
			both := func(do func(e *Engine)) { do(source); do(e) }
			both(func(e *Engine) {
				put(t, e, "tkept", 10, "ten")
				put(t, e, "tkept", 20, "twenty")
				put(t, e, "tgone", 10, "ten")
				commit(t, e, func(b *Batch) { require.NoError(t, b.Put(LockCF, EncodeKey([]byte("told")), []byte("lock"))) })
			})
			start, end := EncodeKey([]byte("tb")), []byte(nil)
			commit(t, e, func(b *Batch) { require.NoError(t, b.Remove(start, end)) })
			assert.Zero(t, e.Locks.Len())
			between(e)

			// Meanwhile, elsewhere:
			put(t, source, "tkept", 30, "thirty")
			put(t, source, "tnew", 15, "fifteen")
			commit(t, source, func(b *Batch) {
				require.NoError(t, b.DeleteRange(EncodeKey([]byte("tg")), EncodeKey([]byte("th"))))
				require.NoError(t, b.DeleteLock(EncodeKey([]byte("told"))))
				require.NoError(t, b.Put(LockCF, EncodeKey([]byte("tlocked")), []byte("lock")))
			})
			assert.Empty(t, get(t, source, "tgone", 50))
			for range 2 { // a second time changes nothing
				commit(t, e, func(b *Batch) { require.NoError(t, b.Replace(start, end, dump(t, source))) })
				for ts, want := range map[uint64]string{9: "", 10: "ten", 19: "ten", 20: "twenty", 29: "twenty", 30: "thirty", 99: "thirty"} {
					assert.Equal(t, want, get(t, e, "tkept", ts), ts)
				}
				assert.Equal(t, "fifteen", get(t, e, "tnew", 15))
				assert.Empty(t, get(t, e, "tgone", 50))
				assert.Nil(t, e.Locks.Get([]byte("told"), nil))
				assert.NotNil(t, e.Locks.Get([]byte("tlocked"), nil))
			}
			put(t, e, "tgone", 60, "again")
			assert.Equal(t, "again", get(t, e, "tgone", 60))
		})
	}
}

func TestGarbageIsCollectedAndNothingElse(t *testing.T) {
	dir := t.TempDir()
	e := open(t, dir)
	for _, ts := range []uint64{10, 20, 30, 40} {
		put(t, e, "tchanged", ts, fmt.Sprint(ts))
	}
	put(t, e, "tdeleted", 10, "x")
	put(t, e, "tdeleted", 20, "")
	put(t, e, "tdeletedlater", 10, "x")
	put(t, e, "tdeletedlater", 30, "")
	commit(t, e, func(b *Batch) {
		require.NoError(t, b.Put(MarkCF, VersionedKey([]byte("tm"), 10), MarkValue(0)))
		require.NoError(t, b.Put(MarkCF, VersionedKey([]byte("tm"), 30), MarkValue(0)))
	})
	before := checksum(t, e)
	require.NoError(t, e.Collect(25))
	assert.Equal(t, before, checksum(t, e))
	view := e.View()
	_, keys, err := view.Size(nil, nil)
	require.NoError(t, err)
	require.NoError(t, view.Close())
	assert.Equal(t, 3+0+2+1, keys)
	e = open(t, copyDir(t, dir))
	for ts, want := range map[uint64]string{25: "20", 30: "30", 45: "40"} {
		assert.Equal(t, want, get(t, e, "tchanged", ts))
	}
	assert.Empty(t, get(t, e, "tdeleted", 25))
	assert.Equal(t, "x", get(t, e, "tdeletedlater", 25))
}

func TestMiddleCutsInTwo(t *testing.T) {
	e := open(t, t.TempDir())
	view := e.View()
	middle, err := view.Middle(nil, nil)
	require.NoError(t, err)
	require.NoError(t, view.Close())
	assert.Nil(t, middle)
	for i := range 100 {
		put(t, e, fmt.Sprintf("t%02d", i), 10, "value")
	}
	view = e.View()
	middle, err = view.Middle(nil, nil)
	require.NoError(t, err)
	left, _, err := view.Size(nil, middle)
	require.NoError(t, err)
	right, _, err := view.Size(middle, nil)
	require.NoError(t, err)
	require.NoError(t, view.Close())
	assert.InDelta(t, left, right, 100)
}

// TestReadersFindTheVersionOfTheirTimestamp compares what is read with a model, when
// the data is far more than the memory table holds.
func TestReadersFindTheVersionOfTheirTimestamp(t *testing.T) {
	e := open(t, t.TempDir())
	seed := uint64(time.Now().UnixNano())
	t.Log("seed", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	model := map[string][]uint64{} // the versions, each with itself as value
	const keys, versions = 20000, 120000
	padding := string(bytes.Repeat([]byte("x"), 1200))
	key := func() string {
		n := random.IntN(keys)
		return fmt.Sprintf("t%c%d_r%08x", 'a'+n%3, n%7, n*2654435761)
	}
	b := e.NewBatch()
	for ts := uint64(1); ts <= versions; ts++ {
		k := key()
		model[k] = append(model[k], ts)
		require.NoError(t, b.Put(DataCF, VersionedKey([]byte(k), ts), DataValue(ts-1, fmt.Appendf(nil, "%d%s", ts, padding))))
		if ts%100 == 0 {
			require.NoError(t, b.Commit())
		}
	}
	check := func(k string, ts uint64) {
		want := ""
		for _, v := range model[k] {
			if v <= ts {
				want = fmt.Sprint(v)
			}
		}
		got, _, _ := strings.Cut(get(t, e, k, ts), "x")
		require.Equal(t, want, got, "%s at %d", k, ts)
	}
	for range 100000 {
		check(key(), uint64(random.IntN(versions)))
	}
	for range 20 {
		ts := uint64(random.IntN(versions))
		txn := e.Read.NewTransaction(false)
		txn.SetReadTS(ts)
		it := txn.NewIterator(badger.DefaultIteratorOptions)
		seen := 0
		for it.Seek([]byte("t")); it.Valid(); it.Next() {
			versions := model[string(it.Item().Key())]
			require.Contains(t, versions, it.Item().Version())
			at := slices.Index(versions, it.Item().Version())
			require.LessOrEqual(t, versions[at], ts)
			require.True(t, at == len(versions)-1 || versions[at+1] > ts)
			seen++
		}
		it.Close()
		txn.Discard()
		want := 0
		for _, versions := range model {
			if versions[0] <= ts {
				want++
			}
		}
		require.Equal(t, want, seen)
	}
}
