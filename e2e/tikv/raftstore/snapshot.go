package raftstore

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/pingcap/kvproto/pkg/metapb"
	"github.com/pingcap/kvproto/pkg/raft_serverpb"
	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

// outgoing is a snapshot on its way from the engine to Raft. It is made in the
// background, since Raft asks for it in the middle of other things.
type outgoing struct {
	wanted bool
	making bool
	made   *raftpb.Snapshot
}

// Snapshot is how Raft asks for a snapshot; it asks again until there is one.
func (l *logStore) Snapshot() (raftpb.Snapshot, error) {
	o := &l.peer.snapshot
	if made := o.made; made != nil {
		o.made = nil
		if made.Metadata.Index >= l.peer.truncated.Index {
			return *made, nil
		}
	}
	o.wanted = true
	return raftpb.Snapshot{}, raft.ErrSnapshotTemporarilyUnavailable
}

// startSnapshot makes the snapshot that Raft wants, of what is applied now.
func (p *peer) startSnapshot() {
	if !p.snapshot.wanted || p.snapshot.making || !p.isInitialized() {
		return
	}
	p.snapshot.wanted = false
	term, err := p.log.Term(p.applied)
	if err != nil {
		return // nothing was applied yet
	}
	region, s := p.region, p.store
	made := &raftpb.Snapshot{Metadata: raftpb.SnapshotMetadata{ConfState: confState(region), Index: p.applied, Term: term}}
	view := s.engine.View()
	p.snapshot.making = true
	s.background(func(context.Context) {
		dump, err := view.Dump(region.StartKey, region.EndKey)
		if closed := view.Close(); err == nil {
			err = closed
		}
		if err == nil {
			made.Data, err = sealSnapshot(region, dump)
		}
		s.tryPost(func() {
			p.snapshot.making = false
			if err != nil {
				s.log.Error("no snapshot", "region", region.Id, "error", err)
				return
			}
			p.snapshot.made = made
			p.store.log.Info("made a snapshot", "region", p.regionID, "index", made.Metadata.Index, "bytes", len(dump))
		})
	})
}

// SnapshotSent tells what became of a snapshot that the transport was given.
func (s *Store) SnapshotSent(region, to uint64, ok bool) {
	s.tryPost(func() {
		p := s.peers[region]
		if p == nil {
			return
		}
		status := raft.SnapshotFinish
		if !ok {
			status = raft.SnapshotFailure
		}
		p.raft.ReportSnapshot(to, status)
	})
}

func sealSnapshot(region *metapb.Region, dump []byte) ([]byte, error) {
	meta, err := region.Marshal()
	if err != nil {
		return nil, fmt.Errorf("seal a snapshot: %w", err)
	}
	out := binary.AppendUvarint(make([]byte, 0, len(meta)+len(dump)+binary.MaxVarintLen64), uint64(len(meta)))
	return append(append(out, meta...), dump...), nil
}

func openSnapshot(data []byte) (*metapb.Region, []byte, error) {
	n, used := binary.Uvarint(data)
	if used <= 0 || uint64(len(data)-used) < n {
		return nil, nil, fmt.Errorf("open a snapshot: it has %d bytes", len(data))
	}
	region := &metapb.Region{}
	if err := region.Unmarshal(data[used : used+int(n)]); err != nil {
		return nil, nil, fmt.Errorf("open a snapshot: %w", err)
	}
	return region, data[used+int(n):], nil
}

// stageSnapshot puts a received snapshot in place of what the peer had.
func (p *peer) stageSnapshot() error {
	meta := p.ready.Snapshot.Metadata
	region, dump, err := openSnapshot(p.ready.Snapshot.Data)
	if err != nil {
		return err
	}
	p.generation.Add(1)
	p.store.log.Info("put a snapshot in place", "region", p.regionID, "peer", p.id, "index", meta.Index, "bytes", len(dump))
	b := p.store.batch
	if p.isInitialized() {
		if err := b.Remove(p.region.StartKey, p.region.EndKey); err != nil {
			return err
		}
	}
	if err := b.Replace(region.StartKey, region.EndKey, dump); err != nil {
		return err
	}
	if err := p.clearLog(); err != nil {
		return err
	}
	hard, _, err := p.log.InitialState()
	if err != nil {
		return fmt.Errorf("put a snapshot in place: %w", err)
	}
	p.region, p.size = region, len(dump)
	p.applied, p.truncated = meta.Index, raft_serverpb.RaftTruncatedState{Index: meta.Index, Term: meta.Term}
	if err := p.log.restart(hard, meta.Index, meta.Term); err != nil {
		return err
	}
	if err := p.saveRegion(); err != nil {
		return err
	}
	return p.saveApplied()
}
