package engine

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc64"

	"github.com/cockroachdb/pebble"
)

// View is the data at one moment. It must be closed.
type View struct{ snapshot *pebble.Snapshot }

// View takes the data as it is now.
func (e *Engine) View() View { return View{e.disk.NewSnapshot()} }

// Close lets the moment go.
func (v View) Close() error { return v.snapshot.Close() }

// Dump packs all data, marks and locks between two encoded keys.
func (v View) Dump(start, end []byte) ([]byte, error) {
	var out []byte
	for _, s := range spaces {
		lower, upper := keyBounds(s, start, end)
		err := scanKeys(v.snapshot, lower, upper, func(key, value []byte) error {
			out = binary.AppendUvarint(out, uint64(len(key)))
			out = append(out, key...)
			out = binary.AppendUvarint(out, uint64(len(value)))
			out = append(out, value...)
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("dump a range: %w", err)
		}
	}
	return out, nil
}

// Size is how many bytes of keys and values a range has, and in how many keys.
func (v View) Size(start, end []byte) (size, keys int, err error) {
	for _, s := range spaces {
		lower, upper := keyBounds(s, start, end)
		err := scanKeys(v.snapshot, lower, upper, func(key, value []byte) error {
			size += len(key) + len(value)
			keys++
			return nil
		})
		if err != nil {
			return 0, 0, fmt.Errorf("measure a range: %w", err)
		}
	}
	return size, keys, nil
}

// Middle is the encoded key at which a range is best cut in two; nil when it has
// less than two keys.
func (v View) Middle(start, end []byte) ([]byte, error) {
	size, _, err := v.Size(start, end)
	if err != nil {
		return nil, err
	}
	lower, upper := keyBounds(dataSpace, start, end)
	var first, middle []byte
	seen := 0
	err = scanKeys(v.snapshot, lower, upper, func(key, value []byte) error {
		seen += len(key) + len(value)
		encoded := key[1 : len(key)-tsLen]
		if first == nil {
			first = append([]byte{}, encoded...)
		}
		if middle == nil && seen*2 >= size && !bytes.Equal(encoded, first) && !bytes.Equal(encoded, start) {
			middle = append([]byte{}, encoded...)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("find the middle of a range: %w", err)
	}
	return middle, nil
}

// Checksum sums up what a reader finds in a range: the newest version of each key
// that has a value, and all locks. Replicas that have applied the same have the
// same sum, whatever each of them collected as garbage.
func (v View) Checksum(start, end []byte) (string, error) {
	hash := crc64.New(crc64.MakeTable(crc64.ECMA))
	add := func(parts ...[]byte) {
		for _, p := range parts {
			// A hash never fails to write.
			_, _ = hash.Write(binary.AppendUvarint(nil, uint64(len(p))))
			_, _ = hash.Write(p)
		}
	}
	var key, value []byte
	last := func() {
		if len(value) > tsLen {
			add(key, value)
		}
	}
	lower, upper := keyBounds(dataSpace, start, end)
	err := scanKeys(v.snapshot, lower, upper, func(k, val []byte) error {
		if len(key) != len(k) || !bytes.Equal(key[:len(key)-tsLen], k[:len(k)-tsLen]) {
			last()
		}
		key, value = append(key[:0], k...), append(value[:0], val...)
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("sum up a range: %w", err)
	}
	last()
	lower, upper = keyBounds(lockSpace, start, end)
	err = scanKeys(v.snapshot, lower, upper, func(k, val []byte) error {
		add(k, val)
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("sum up a range: %w", err)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// Get reads something that is neither data, mark nor lock; nil when it is not there.
func (v View) Get(key []byte) ([]byte, error) {
	value, closer, err := v.snapshot.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %q: %w", key, err)
	}
	out := append([]byte{}, value...)
	return out, closer.Close()
}
