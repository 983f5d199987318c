package disruption

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/lease"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/planning"
	"github.com/tidb-groups/tidb-groups/shared/testkit/componenttest"
	"github.com/tidb-groups/tidb-groups/shared/testkit/instancetest"
)

// leased lets everybody be restarted who has the Lease.
type leased struct{ componenttest.Removable }

func (leased) NeedsLease(component.Disruption) bool { return true }

// KV-15: before the Lease is taken from a store that is gone, PD is told to let it and its
// batch lead again first. Later nothing records the eviction.
func TestKV15TheLeaseOfALostStoreIsTakenOnlyAfterPDLetsItLead(t *testing.T) {
	stop := func(id, pod string) component.Call {
		return component.Call{Verb: component.StopEvictingLeaders, Target: id, Instance: pod}
	}
	pdGroup := &v1alpha1.PDGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pd"}}
	flash := &v1alpha1.TiFlashGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "flash"}}
	for name, c := range map[string]struct {
		group  v1alpha1.Group
		change func(*observation.Snapshot)
		calls  []component.Call
		takes  bool
	}{
		"the holder's store": {pdGroup, func(s *observation.Snapshot) { s.PD.EvictLeader = []string{"4", "6"} }, []component.Call{stop("4", "kv-1")}, false},
		"and one of its batch": {flash, func(s *observation.Snapshot) {
			s.PD.EvictLeader = []string{"4", "5", "6"}
			s.Lease.Batch = []lease.BatchMember{{Instance: "kv-2"}}
		}, []component.Call{stop("4", "kv-1"), stop("5", "kv-2")}, false},
		"PD does not know yet whether it does": {flash, func(s *observation.Snapshot) { s.PD.EvictionsUnknown = true }, []component.Call{stop("4", "kv-1")}, false},
		"another store's":                      {flash, func(s *observation.Snapshot) { s.PD.EvictLeader = []string{"5", "6"} }, nil, true},
		"the holder was no store": {flash, func(s *observation.Snapshot) {
			s.PD.EvictLeader, s.Lease.Holder.Kind = []string{"4"}, v1alpha1.KindPDGroup
		}, nil, true},
		"the Lease has no holder": {flash, func(s *observation.Snapshot) {
			s.PD.EvictLeader, s.Lease, s.HolderLost = []string{"4"}, lease.State{}, false
		}, nil, true},
		"PD does not answer":           {flash, func(s *observation.Snapshot) { s.PD = pd.View{Err: errors.New("no")} }, nil, false},
		"and is to be fixed":           {pdGroup, func(s *observation.Snapshot) { s.PD = pd.View{Err: errors.New("no")} }, nil, true},
		"its own kind looks by itself": {&v1alpha1.TiKVGroup{}, func(s *observation.Snapshot) { s.PD.EvictLeader = []string{"4"} }, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := observation.Snapshot{HolderLost: true, Lease: lease.State{Holder: lease.Holder{Kind: v1alpha1.KindTiKVGroup, Instance: "kv-1", UID: "former"}}}
			s.PD.Stores = []pd.Store{{ID: "4", Address: "kv-1.kv-peer.ns.svc:20160"}, {ID: "5", Address: "kv-2.kv-peer.ns.svc:20160"}, {ID: "6", Address: "kv-11.kv-peer.ns.svc:20160"}}
			c.change(&s)
			var plan Result
			o := beginDisruption(planner{planning.Inputs{Group: c.group, Snapshot: s, Rendering: component.Rendering{Component: leased{}}}, &plan}, []component.Disruption{{Instance: instancetest.Instance(0, "a"), Verb: member.Restart, Why: "it is old"}}, planning.Removal{})
			assert.Equal(t, c.calls, plan.Calls)
			assert.Equal(t, c.takes, plan.Lease.Take != nil, o.Message)
			if !c.takes {
				assert.Equal(t, v1alpha1.ReasonWaitingForLease, o.Reason)
			}
			if s.HolderLost && s.PD.Err == nil && s.Lease.Holder.Kind == v1alpha1.KindTiKVGroup && c.takes && c.group.GroupKind() != v1alpha1.KindTiKVGroup {
				require.Len(t, plan.Rechecks, 1, "the poll may be older than the order")
				still := plan.Rechecks[0].Still
				assert.True(t, still(s.PD).IsAllowed())
				s.PD.EvictLeader = []string{"4"}
				assert.Equal(t, "PD keeps leaders away from store 4 (kv-1)", still(s.PD).Reason())
				assert.False(t, still(pd.View{Err: errors.New("no")}).IsAllowed())
			}
		})
	}
}

// The order that lets a store lead again is not kept back until it does.
func TestKV15TheOrderToLetAStoreLeadNeedsNoRecheck(t *testing.T) {
	s := observation.Snapshot{HolderLost: true, Lease: lease.State{Holder: lease.Holder{Kind: v1alpha1.KindTiKVGroup, Instance: "kv-1"}}}
	s.PD.Stores = []pd.Store{{ID: "4", Address: "kv-1.kv-peer.ns.svc:20160"}}
	for _, evicts := range []bool{false, true} {
		if evicts {
			s.PD.EvictLeader = []string{"4"}
		}
		var plan Result
		recheckLostHolder(planner{planning.Inputs{Snapshot: s}, &plan})
		assert.Equal(t, evicts, len(plan.Rechecks) == 0)
	}
}
