package group

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/lease"
	"github.com/tidb-groups/tidb-groups/shared/rollout"
)

// careful is a Component whose members are all needed and may be stopped.
type careful struct{ Component }

func (careful) Spare(*v1alpha1.Instance) bool                       { return false }
func (careful) Safe(Disruption) string                              { return "" }
func (careful) Transient(Disruption) string                         { return "" }
func (careful) Leased(Disruption) bool                              { return true }
func (careful) Rank(Disruption) int                                 { return 0 }
func (careful) Leaders(*v1alpha1.Instance) int                      { return 7 }
func (careful) Replaced(*v1alpha1.Instance) bool                    { return false }
func (careful) Prepare(Disruption, time.Time) Preparation           { return Preparation{Ready: true} }
func (careful) Recover(*v1alpha1.Instance, lease.State) Preparation { return Preparation{} }

// kv is an Instance of group kv that its database holds.
func kv(slot int32, uid string) *v1alpha1.Instance {
	g := &v1alpha1.TiKVGroup{}
	i := &v1alpha1.Instance{ObjectMeta: metav1.ObjectMeta{
		Name: fmt.Sprintf("kv-%d", slot), UID: types.UID(uid), Finalizers: []string{v1alpha1.FinalizerMember},
		Labels: map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy, v1alpha1.LabelComponent: g.Component()},
	}}
	i.Spec.Slot, i.Spec.Group = slot, v1alpha1.InstanceGroup{Kind: v1alpha1.KindTiKVGroup, Name: "kv"}
	return i
}

func doomed(i *v1alpha1.Instance) *v1alpha1.Instance {
	i.DeletionTimestamp = ptr.To(metav1.Unix(1800000000, 0))
	return i
}

func marked(i *v1alpha1.Instance) *v1alpha1.Instance {
	i.Annotations = map[string]string{v1alpha1.AnnotationDisruption: string(Restart)}
	return i
}

// What a deletion with care writes, one write after the other: an operator that
// dies after any of them finds the next state of this table.
func TestADeletedMemberIsRestartedStepByStep(t *testing.T) {
	since := time.Unix(1799999000, 0)
	held := func(uid, returns string) lease.State {
		return lease.State{Holder: lease.Holder{Kind: v1alpha1.KindTiKVGroup, Instance: "kv-1", UID: types.UID(uid)}, Since: since, Leaders: 9, Returns: returns}
	}
	gone := func(s *Snapshot) { s.HolderReturns = true }
	let := doomed(kv(1, "old"))
	let.Finalizers = nil
	for name, c := range map[string]struct {
		lease     lease.State
		instances []*v1alpha1.Instance
		change    func(*Snapshot)
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
		"the Lease is taken, and says that somebody comes back": {instances: []*v1alpha1.Instance{doomed(kv(1, "old"))}, holder: "old", leaders: 7, returns: "kv"},
		"with the Lease and made safe it may go":                {lease: held("old", "kv"), instances: []*v1alpha1.Instance{doomed(marked(kv(1, "old")))}, mark: true, released: true},
		"one that held the Lease already has it say so first":   {lease: held("old", ""), instances: []*v1alpha1.Instance{doomed(marked(kv(1, "old")))}, holder: "old", since: since, leaders: 9, returns: "kv", mark: true},
		"while it goes nobody else is disrupted":                {lease: held("old", "kv"), instances: []*v1alpha1.Instance{let, doomed(kv(2, "two"))}},
		"when it is gone neither":                               {lease: held("old", "kv"), change: gone, instances: []*v1alpha1.Instance{doomed(kv(2, "two"))}},
		"who comes is marked":                                   {lease: held("old", "kv"), change: gone, instances: []*v1alpha1.Instance{kv(1, "new"), doomed(kv(2, "two"))}, mark: true},
		"and gets the Lease then":                               {lease: held("old", "kv"), change: gone, instances: []*v1alpha1.Instance{marked(kv(1, "new")), doomed(kv(2, "two"))}, holder: "new", since: since, leaders: 9, mark: true},
		"who is deleted again likewise":                         {lease: held("old", "kv"), change: gone, instances: []*v1alpha1.Instance{doomed(marked(kv(1, "new")))}, holder: "new", since: since, leaders: 9, returns: "kv", mark: true},
		"and recovers with it":                                  {lease: held("new", ""), instances: []*v1alpha1.Instance{marked(kv(1, "new")), doomed(kv(2, "two"))}, mark: true},
		"nobody comes where a claim is retired": {lease: held("old", "kv"), gives: true, change: func(s *Snapshot) {
			s.HolderReturns, s.RetiredSlots = true, map[int32]bool{1: true}
		}},
		"a holder of another group is that group's": {lease: held("old", "kv2"), change: gone, instances: []*v1alpha1.Instance{doomed(kv(2, "two"))}},
	} {
		t.Run(name, func(t *testing.T) {
			g := &v1alpha1.TiKVGroup{ObjectMeta: metav1.ObjectMeta{Name: "kv", Namespace: "ns"}}
			g.Spec.PDGroup.Name = "pd"
			s := Snapshot{Lease: c.lease, Instances: c.instances}
			if c.change != nil {
				c.change(&s)
			}
			var due []Disruption
			for _, i := range s.Instances {
				if i.DeletionTimestamp != nil && len(i.Finalizers) > 0 {
					due = append(due, Disruption{Instance: i, Verb: Restart, Why: wasDeleted})
				}
			}
			plan := Plan{disrupted: map[string]Verb{}, granted: map[string]bool{}, released: map[string]bool{}, Waiting: map[string]string{}}
			r := Rendering{Disrupt: careful{}}
			planDisruptions(&plan, g, s, r, due, removal{})
			tell(&plan, g, s, r, due)
			if c.holder == "" {
				assert.Nil(t, plan.Lease.Take)
			} else if assert.NotNil(t, plan.Lease.Take) {
				assert.Equal(t, lease.State{Holder: lease.Holder{Kind: v1alpha1.KindTiKVGroup, Instance: "kv-1", UID: types.UID(c.holder)}, Since: c.since, Leaders: c.leaders, Returns: c.returns}, plan.Lease.state())
			}
			assert.Equal(t, c.gives, plan.Lease.Give)
			assert.Equal(t, c.mark, plan.disrupted["kv-1"] == Restart)
			assert.Equal(t, c.released, plan.released["kv-1"])
			assert.False(t, plan.released["kv-2"], "one at a time")
			for _, d := range due {
				assert.Equal(t, !plan.released[d.Instance.Name], plan.Waiting[d.Instance.Name] != "", "who stays says why")
			}
		})
	}
}

// Its store is in the database: it comes back to leave it properly, even if it is
// one too many by now.
func TestTheSlotOfADeletedMemberIsFilledAgain(t *testing.T) {
	g := &v1alpha1.TiKVGroup{ObjectMeta: metav1.ObjectMeta{Name: "kv"}}
	g.Spec.Replicas = ptr.To[int32](2)
	s := Snapshot{
		Instances: []*v1alpha1.Instance{kv(0, "0"), kv(3, "3")}, HolderReturns: true,
		Lease: lease.State{Holder: lease.Holder{Kind: v1alpha1.KindTiKVGroup, Instance: "kv-2"}, Returns: "kv"},
	}
	slots := func() rollout.Slots {
		create, extra := planSlots(g, s, Rendering{Disrupt: careful{}}, 0)
		return rollout.Slots{Create: create, Surplus: extra}
	}
	assert.Equal(t, []int32{2}, slots().Create)
	g.Spec.Replicas = ptr.To[int32](4)
	assert.Equal(t, []int32{2, 1}, slots().Create, "it comes first, and in its own slot")
	s.Instances = append(s.Instances, kv(2, "2"))
	assert.Equal(t, []int32{1}, slots().Create)
	s.RetiredSlots = map[int32]bool{2: true}
	s.Instances = s.Instances[:2]
	assert.Equal(t, []int32{1, 4}, slots().Create)
}
