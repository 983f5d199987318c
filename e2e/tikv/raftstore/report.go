package raftstore

import (
	"context"
	"fmt"
	"slices"

	"github.com/pingcap/kvproto/pkg/metapb"

	"github.com/tidb-groups/tidb-groups/e2e/tikv/engine"
)

// Report is what this store has of one region.
type Report struct {
	Region   *metapb.Region `json:"region"`
	Peer     uint64         `json:"peer"`
	Leader   uint64         `json:"leader"` // the leader's peer, 0 when none is known
	Term     uint64         `json:"term"`
	Applied  uint64         `json:"applied"`
	Size     int            `json:"size"`
	Checksum string         `json:"checksum,omitempty"`
}

// Counts is how many regions are here and led from here, and how large they are.
type Counts struct{ Regions, Leaders, Size int }

// Count counts the regions.
func (s *Store) Count(ctx context.Context) (Counts, error) {
	var c Counts
	err := s.ask(ctx, func() {
		for _, p := range s.peers {
			c.Regions++
			c.Size += p.size
			if p.isLeader() {
				c.Leaders++
			}
		}
	})
	return c, err
}

// Reports describes the regions, and with sums their data at the moment that
// Applied names.
func (s *Store) Reports(ctx context.Context, sums bool) (out []Report, err error) {
	var view engine.View
	err = s.ask(ctx, func() {
		view = s.engine.View()
		for _, p := range s.peers {
			out = append(out, Report{Region: p.region, Peer: p.id, Leader: p.lead, Term: p.term, Applied: p.applied, Size: p.size})
		}
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(out, func(a, b Report) int { return int(a.Region.Id) - int(b.Region.Id) })
	for i := range out {
		if !sums || len(out[i].Region.Peers) == 0 {
			continue
		}
		out[i].Checksum, err = view.Checksum(out[i].Region.StartKey, out[i].Region.EndKey)
		if err != nil {
			break
		}
	}
	if closed := view.Close(); err == nil && closed != nil {
		err = fmt.Errorf("report regions: %w", closed)
	}
	return out, err
}

// ask runs a function in the goroutine of Run and waits for it.
func (s *Store) ask(ctx context.Context, do func()) error {
	done := make(chan struct{})
	if !s.tryPost(func() { do(); close(done) }) {
		return errStopped
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("ask the store: %w", ctx.Err())
	case <-s.stopped:
		return errStopped
	}
}
