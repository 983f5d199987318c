package group

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/lease"
	"github.com/tidb-groups/tidb-groups/shared/pd"
)

// leased lets everybody be restarted who has the Lease.
type leased struct{ willing }

func (leased) Leased(Disruption) bool { return true }

// KV-15: whoever takes the Lease from a store that is gone has PD let it and its
// companions lead again first. Nobody else would know of it later.
func TestKV15NobodyTakesTheLeaseFromALostStoreThatPDKeepsLeadersFrom(t *testing.T) {
	stop := func(id, pod string) Call { return Call{Verb: StopEvictingLeaders, Target: id, Instance: pod} }
	pdGroup := &v1alpha1.PDGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pd"}}
	flash := &v1alpha1.TiFlashGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "flash"}}
	for name, c := range map[string]struct {
		group  v1alpha1.Group
		change func(*Snapshot)
		calls  []Call
		takes  bool
	}{
		"the holder's store": {pdGroup, func(s *Snapshot) { s.PD.EvictLeader = []string{"4", "6"} }, []Call{stop("4", "kv-1")}, false},
		"and a companion's": {flash, func(s *Snapshot) {
			s.PD.EvictLeader = []string{"4", "5", "6"}
			s.Lease.Companions = []lease.Companion{{Instance: "kv-2"}}
		}, []Call{stop("4", "kv-1"), stop("5", "kv-2")}, false},
		"somebody else's": {flash, func(s *Snapshot) { s.PD.EvictLeader = []string{"5", "6"} }, nil, true},
		"the holder was no store": {flash, func(s *Snapshot) {
			s.PD.EvictLeader, s.Lease.Holder.Kind = []string{"4"}, v1alpha1.KindPDGroup
		}, nil, true},
		"nobody holds it":              {flash, func(s *Snapshot) { s.PD.EvictLeader, s.Lease, s.HolderLost = []string{"4"}, lease.State{}, false }, nil, true},
		"PD is silent":                 {flash, func(s *Snapshot) { s.PD = pd.View{Err: errors.New("no")} }, nil, false},
		"and is to be mended":          {pdGroup, func(s *Snapshot) { s.PD = pd.View{Err: errors.New("no")} }, nil, true},
		"its own kind looks by itself": {&v1alpha1.TiKVGroup{}, func(s *Snapshot) { s.PD.EvictLeader = []string{"4"} }, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := Snapshot{HolderLost: true, Lease: lease.State{Holder: lease.Holder{Kind: v1alpha1.KindTiKVGroup, Instance: "kv-1", UID: "former"}}}
			s.PD.Stores = []pd.Store{{ID: "4", Address: "kv-1.kv-peer.ns.svc:20160"}, {ID: "5", Address: "kv-2.kv-peer.ns.svc:20160"}, {ID: "6", Address: "kv-11.kv-peer.ns.svc:20160"}}
			c.change(&s)
			var plan Plan
			o := next(&plan, c.group, s, Rendering{Disrupt: leased{}}, []Disruption{{Instance: kv(0, "a"), Verb: Restart, Why: "it is old"}}, removal{})
			assert.Equal(t, c.calls, plan.Calls)
			assert.Equal(t, c.takes, plan.Lease.Take != nil, o.Message)
			if !c.takes {
				assert.Equal(t, v1alpha1.ReasonWaitingForLease, o.Reason)
			}
			if s.HolderLost && s.PD.Err == nil && s.Lease.Holder.Kind == v1alpha1.KindTiKVGroup && c.takes && c.group.GroupKind() != v1alpha1.KindTiKVGroup {
				require.Len(t, plan.rechecks, 1, "the poll may be older than the order")
				still := plan.rechecks[0].still
				assert.Empty(t, still(s.PD))
				s.PD.EvictLeader = []string{"4"}
				assert.Equal(t, "PD keeps leaders away from store 4 (kv-1)", still(s.PD))
				assert.NotEmpty(t, still(pd.View{Err: errors.New("no")}))
			}
		})
	}
}

// The order that lets a store lead again is not kept back until it does.
func TestKV15WhatPDStillHasToBeToldIsNotWaitedForFirst(t *testing.T) {
	s := Snapshot{HolderLost: true, Lease: lease.State{Holder: lease.Holder{Kind: v1alpha1.KindTiKVGroup, Instance: "kv-1"}}}
	s.PD.Stores = []pd.Store{{ID: "4", Address: "kv-1.kv-peer.ns.svc:20160"}}
	for _, evicts := range []bool{false, true} {
		if evicts {
			s.PD.EvictLeader = []string{"4"}
		}
		var plan Plan
		plan.recheckForgotten(s)
		assert.Equal(t, evicts, len(plan.rechecks) == 0)
	}
}
