package engine

import (
	"encoding/binary"
	"fmt"

	"github.com/pingcap/tidb/pkg/util/codec"
)

// The first byte of a key in the persistent store says what the key is. Data,
// marks and locks are ordered as region boundaries are: the rest of the key is
// the user's key in TiDB's memory-comparable encoding.
const (
	dataSpace  = 'd' // + encoded key + version → start timestamp + value
	markSpace  = 'x' // + encoded key + start timestamp → commit timestamp, 0 for a rollback
	lockSpace  = 'l' // + encoded key → lock
	raftSpace  = 'r' // + region ID + kind (+ index)
	storeSpace = 's' // + name
)

var spaces = []byte{dataSpace, markSpace, lockSpace}

// Names of the column families as commands in the Raft log have them.
const (
	DataCF = "write"
	MarkCF = "mark"
	LockCF = "lock"
)

const tsLen = 8

// EncodeKey gives a user's key the encoding that region boundaries have.
func EncodeKey(key []byte) []byte { return codec.EncodeBytes(nil, key) }

// DecodeKey undoes EncodeKey.
func DecodeKey(encoded []byte) ([]byte, error) {
	rest, key, err := codec.DecodeBytes(encoded, nil)
	if err != nil {
		return nil, fmt.Errorf("decode key %x: %w", encoded, err)
	}
	if len(rest) > 0 {
		return nil, fmt.Errorf("decode key %x: %d bytes too many", encoded, len(rest))
	}
	return key, nil
}

// VersionedKey is the key of a version in DataCF and MarkCF. Versions of one key
// are in ascending order.
func VersionedKey(key []byte, ts uint64) []byte {
	return binary.BigEndian.AppendUint64(EncodeKey(key), ts)
}

func splitVersion(versioned []byte) (key []byte, ts uint64, err error) {
	if len(versioned) < tsLen {
		return nil, 0, fmt.Errorf("decode key %x: no version", versioned)
	}
	at := len(versioned) - tsLen
	key, err = DecodeKey(versioned[:at])
	return key, binary.BigEndian.Uint64(versioned[at:]), err
}

func findSpace(cf string) (byte, error) {
	switch cf {
	case DataCF:
		return dataSpace, nil
	case MarkCF:
		return markSpace, nil
	case LockCF:
		return lockSpace, nil
	}
	return 0, fmt.Errorf("unknown column family %q", cf)
}

func joinKey(space byte, rest []byte) []byte {
	return append(append(make([]byte, 0, len(rest)+1), space), rest...)
}

// keyBounds is a region's range within a space.
func keyBounds(space byte, start, end []byte) (lower, upper []byte) {
	lower = joinKey(space, start)
	if len(end) == 0 {
		return lower, []byte{space + 1}
	}
	return lower, joinKey(space, end)
}

// RaftKey is where something of a region's Raft state is kept.
func RaftKey(region uint64, kind byte) []byte {
	return append(binary.BigEndian.AppendUint64([]byte{raftSpace}, region), kind)
}

// LogKey is where an entry of a region's Raft log is kept.
func LogKey(region, index uint64) []byte {
	return binary.BigEndian.AppendUint64(RaftKey(region, Log), index)
}

// Kinds of Raft state.
const (
	Apply     byte = 'a' // raft_serverpb.RaftApplyState
	Log       byte = 'g' // + index → raftpb.Entry
	HardState byte = 'h' // raftpb.HardState
	Meta      byte = 'm' // raft_serverpb.RegionLocalState
)

// StoreKey is where something of the store itself is kept.
func StoreKey(name string) []byte { return joinKey(storeSpace, []byte(name)) }
