package raftstore

import (
	"fmt"

	"github.com/pingcap/kvproto/pkg/metapb"
	"github.com/pingcap/kvproto/pkg/raft_serverpb"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/tidb-groups/tidb-groups/e2e/tikv/engine"
)

// AddFirstRegion puts a cluster's first region into a batch, with this store's peer as the
// only one.
func AddFirstRegion(b *engine.Batch, region *metapb.Region) error {
	meta, err := (&raft_serverpb.RegionLocalState{Region: region}).Marshal()
	if err != nil {
		return fmt.Errorf("found the first region: %w", err)
	}
	apply, err := (&raft_serverpb.RaftApplyState{
		AppliedIndex: firstIndex, TruncatedState: &raft_serverpb.RaftTruncatedState{Index: firstIndex, Term: firstTerm},
	}).Marshal()
	if err != nil {
		return fmt.Errorf("found the first region: %w", err)
	}
	hard, err := (&raftpb.HardState{Term: firstTerm, Commit: firstIndex}).Marshal()
	if err != nil {
		return fmt.Errorf("found the first region: %w", err)
	}
	for kind, value := range map[byte][]byte{engine.Meta: meta, engine.Apply: apply, engine.HardState: hard} {
		if err := b.Set(engine.RaftKey(region.Id, kind), value); err != nil {
			return fmt.Errorf("found the first region: %w", err)
		}
	}
	return nil
}

// Renew makes all leaders tell PD of their regions.
func (s *Store) Renew() {
	s.tryPost(func() {
		for _, p := range s.peers {
			if p.isLeader() {
				p.beat()
			}
		}
	})
}
