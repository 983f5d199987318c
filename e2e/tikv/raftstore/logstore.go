package raftstore

import (
	"fmt"

	"github.com/pingcap/kvproto/pkg/raft_serverpb"
	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/tidb-groups/tidb-groups/e2e/tikv/engine"
)

// A region's log begins after this index and term, as TiKV's do: a peer without
// any entry is therefore behind, and gets a snapshot.
const (
	firstIndex = 5
	firstTerm  = 5
)

// keepBytes is how much of the log is kept at most for followers that lag.
const keepBytes = 4 << 20

// logStore is a region's log: all entries that are kept, in memory, with a copy in
// the engine.
type logStore struct {
	*raft.MemoryStorage
	peer  *peer
	bytes int
}

func (l *logStore) InitialState() (raftpb.HardState, raftpb.ConfState, error) {
	hard, _, err := l.MemoryStorage.InitialState()
	return hard, confState(l.peer.region), err
}

// newLog makes an empty log that begins after an index.
func newLog(p *peer, hard raftpb.HardState, index, term uint64) (*logStore, error) {
	l := &logStore{MemoryStorage: raft.NewMemoryStorage(), peer: p}
	return l, l.restart(hard, index, term)
}

func (l *logStore) restart(hard raftpb.HardState, index, term uint64) error {
	l.bytes = 0
	if index > 0 {
		err := l.ApplySnapshot(raftpb.Snapshot{Metadata: raftpb.SnapshotMetadata{Index: index, Term: term}})
		if err != nil {
			return fmt.Errorf("begin a log after %d: %w", index, err)
		}
	}
	if err := l.SetHardState(hard); err != nil {
		return fmt.Errorf("begin a log after %d: %w", index, err)
	}
	return nil
}

// load reads the entries that the engine has.
func (l *logStore) load(e *engine.Engine) error {
	var entries []raftpb.Entry
	err := e.Entries(l.peer.regionID, func(value []byte) error {
		var entry raftpb.Entry
		if err := entry.Unmarshal(value); err != nil {
			return fmt.Errorf("read the log of region %d: %w", l.peer.regionID, err)
		}
		entries = append(entries, entry)
		l.bytes += entry.Size()
		return nil
	})
	if err != nil {
		return err
	}
	if err := l.Append(entries); err != nil {
		return fmt.Errorf("read the log of region %d: %w", l.peer.regionID, err)
	}
	return nil
}

// stage writes entries into a batch. Entries after them, of a leader that was
// deposed, go.
func (l *logStore) stage(b *engine.Batch, entries []raftpb.Entry) error {
	if len(entries) == 0 {
		return nil
	}
	last, err := l.LastIndex()
	if err != nil {
		return fmt.Errorf("append to a log: %w", err)
	}
	after := entries[len(entries)-1].Index + 1
	if after <= last {
		if err := b.Unset(engine.LogKey(l.peer.regionID, after), engine.LogKey(l.peer.regionID, last+1)); err != nil {
			return fmt.Errorf("append to a log: %w", err)
		}
	}
	for i := range entries {
		value, err := entries[i].Marshal()
		if err != nil {
			return fmt.Errorf("append to a log: %w", err)
		}
		if err := b.Set(engine.LogKey(l.peer.regionID, entries[i].Index), value); err != nil {
			return fmt.Errorf("append to a log: %w", err)
		}
		l.bytes += len(value)
	}
	if err := l.Append(entries); err != nil {
		return fmt.Errorf("append to a log: %w", err)
	}
	return nil
}

// compact forgets entries that were applied, when there are many.
func (p *peer) compact() error {
	first, err := p.log.FirstIndex()
	if err != nil {
		return fmt.Errorf("compact a log: %w", err)
	}
	keep := uint64(p.store.config.KeepEntries)
	if p.applied < first || (p.applied-first < keep && p.log.bytes < keepBytes) {
		return nil
	}
	to := p.applied - min(p.applied-first, keep/2)
	if p.log.bytes >= keepBytes {
		to = p.applied
	}
	term, err := p.log.Term(to)
	if err != nil {
		return fmt.Errorf("compact a log: %w", err)
	}
	if err := p.log.Compact(to); err != nil {
		return fmt.Errorf("compact a log: %w", err)
	}
	if err := p.store.batch.Unset(engine.LogKey(p.regionID, 0), engine.LogKey(p.regionID, to+1)); err != nil {
		return fmt.Errorf("compact a log: %w", err)
	}
	p.truncated = raft_serverpb.RaftTruncatedState{Index: to, Term: term}
	p.log.bytes = 0
	last, err := p.log.LastIndex()
	if err != nil {
		return fmt.Errorf("compact a log: %w", err)
	}
	if last > to {
		rest, err := p.log.Entries(to+1, last+1, ^uint64(0))
		if err != nil {
			return fmt.Errorf("compact a log: %w", err)
		}
		for i := range rest {
			p.log.bytes += rest[i].Size()
		}
	}
	return p.saveApplied()
}

// clearLog stages the end of all entries.
func (p *peer) clearLog() error {
	if err := p.store.batch.Unset(engine.LogKey(p.regionID, 0), engine.RaftKey(p.regionID, engine.Log+1)); err != nil {
		return fmt.Errorf("clear a log: %w", err)
	}
	return nil
}
