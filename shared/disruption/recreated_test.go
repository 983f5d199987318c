package disruption

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/lease"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/planning"
	"github.com/tidb-groups/tidb-groups/shared/testkit/componenttest"
	"github.com/tidb-groups/tidb-groups/shared/testkit/instancetest"
)

// What a deletion with care writes, one write after the other: an operator that
// dies after any of them finds the next state of this table.
func TestADeletedMemberIsRestartedStepByStep(t *testing.T) {
	since := time.Unix(1799999000, 0)
	held := func(uid, returns string) lease.State {
		return lease.State{Holder: lease.Holder{Kind: v1alpha1.KindTiKVGroup, Instance: "kv-1", UID: types.UID(uid)}, Since: since, Leaders: 9, Recreating: returns}
	}
	gone := func(s *observation.Snapshot) { s.HolderRecreated = true }
	let := instancetest.MarkDeleted(instancetest.Instance(1, "old"))
	let.Finalizers = nil
	for name, c := range map[string]struct {
		lease     lease.State
		instances []*v1alpha1.Instance
		change    func(*observation.Snapshot)
		// what the Lease is to say, empty if it is left alone
		holder  string
		since   time.Time
		leaders int
		returns string
		gives   bool
		// what becomes of kv-1
		mark     bool
		released bool
	}{
		"the Lease is taken, and says that a member comes back": {instances: []*v1alpha1.Instance{instancetest.MarkDeleted(instancetest.Instance(1, "old"))}, holder: "old", leaders: 7, returns: "kv"},
		"with the Lease and made safe it may go":                {lease: held("old", "kv"), instances: []*v1alpha1.Instance{instancetest.MarkDeleted(instancetest.MarkRestarting(instancetest.Instance(1, "old")))}, mark: true, released: true},
		"one that held the Lease already has it say so first":   {lease: held("old", ""), instances: []*v1alpha1.Instance{instancetest.MarkDeleted(instancetest.MarkRestarting(instancetest.Instance(1, "old")))}, holder: "old", since: since, leaders: 9, returns: "kv", mark: true},
		"while it goes no other member is disrupted":            {lease: held("old", "kv"), instances: []*v1alpha1.Instance{let, instancetest.MarkDeleted(instancetest.Instance(2, "two"))}},
		"when it is gone neither":                               {lease: held("old", "kv"), change: gone, instances: []*v1alpha1.Instance{instancetest.MarkDeleted(instancetest.Instance(2, "two"))}},
		"who comes is marked":                                   {lease: held("old", "kv"), change: gone, instances: []*v1alpha1.Instance{instancetest.Instance(1, "new"), instancetest.MarkDeleted(instancetest.Instance(2, "two"))}, mark: true},
		"and gets the Lease then":                               {lease: held("old", "kv"), change: gone, instances: []*v1alpha1.Instance{instancetest.MarkRestarting(instancetest.Instance(1, "new")), instancetest.MarkDeleted(instancetest.Instance(2, "two"))}, holder: "new", since: since, leaders: 9, mark: true},
		"who is deleted again likewise":                         {lease: held("old", "kv"), change: gone, instances: []*v1alpha1.Instance{instancetest.MarkDeleted(instancetest.MarkRestarting(instancetest.Instance(1, "new")))}, holder: "new", since: since, leaders: 9, returns: "kv", mark: true},
		"and recovers with it":                                  {lease: held("new", ""), instances: []*v1alpha1.Instance{instancetest.MarkRestarting(instancetest.Instance(1, "new")), instancetest.MarkDeleted(instancetest.Instance(2, "two"))}, mark: true},
		"no member is made where a claim is retired": {lease: held("old", "kv"), gives: true, change: func(s *observation.Snapshot) {
			s.HolderRecreated, s.RetiredSlots = true, map[int32]bool{1: true}
		}},
		"a holder of another group is that group's": {lease: held("old", "kv2"), change: gone, instances: []*v1alpha1.Instance{instancetest.MarkDeleted(instancetest.Instance(2, "two"))}},
	} {
		t.Run(name, func(t *testing.T) {
			g := &v1alpha1.TiKVGroup{ObjectMeta: metav1.ObjectMeta{Name: "kv", Namespace: "ns"}}
			g.Spec.PDGroup.Name = "pd"
			s := observation.Snapshot{Lease: c.lease, Instances: c.instances}
			if c.change != nil {
				c.change(&s)
			}
			var due []component.Disruption
			for _, i := range s.Instances {
				if i.DeletionTimestamp != nil && len(i.Finalizers) > 0 {
					due = append(due, component.Disruption{Instance: i, Verb: member.Restart, Why: planning.ReasonDeleted})
				}
			}
			r := component.Rendering{Component: componenttest.Needed{}}
			plan := PlanDisruptions(planning.Inputs{Group: g, Snapshot: s, Rendering: r}, due, planning.Removal{})
			if c.holder == "" {
				assert.Nil(t, plan.Lease.Take)
			} else if assert.NotNil(t, plan.Lease.Take) {
				assert.Equal(t, lease.State{Holder: lease.Holder{Kind: v1alpha1.KindTiKVGroup, Instance: "kv-1", UID: types.UID(c.holder)}, Since: c.since, Leaders: c.leaders, Recreating: c.returns}, plan.Lease.State())
			}
			assert.Equal(t, c.gives, plan.Lease.Release)
			assert.Equal(t, c.mark, plan.Disrupted["kv-1"] == member.Restart)
			assert.Equal(t, c.released, plan.Released["kv-1"])
			assert.False(t, plan.Released["kv-2"], "one at a time")
			for _, d := range due {
				assert.Equal(t, !plan.Released[d.Instance.Name], plan.Waiting[d.Instance.Name] != "", "who stays says why")
			}
		})
	}
}
