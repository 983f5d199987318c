package group

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/disruption"
	"github.com/tidb-groups/tidb-groups/shared/gate"
	"github.com/tidb-groups/tidb-groups/shared/lease"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/planning"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/testkit/componenttest"
	"github.com/tidb-groups/tidb-groups/shared/testkit/instancetest"
	"github.com/tidb-groups/tidb-groups/shared/verdict"
)

// P5: the Lease of a member that was deleted and comes back does not wait for the
// group to be resumed.
func TestARecreatedMemberThatASuspendedGroupWaitsForGivesTheLeaseBack(t *testing.T) {
	g := &v1alpha1.TiKVGroup{ObjectMeta: metav1.ObjectMeta{Name: "kv", Namespace: "ns"}}
	g.Spec.PDGroup.Name, g.Spec.Suspended, g.Spec.Replicas = "pd", true, ptr.To(int32(1))
	s := observation.Snapshot{HolderRecreated: true, Lease: lease.State{Holder: lease.Holder{Kind: v1alpha1.KindTiKVGroup, Instance: "kv-2", UID: "old"}, Recreating: "kv"}}
	plain := func(i *v1alpha1.Instance) *v1alpha1.Instance {
		i.Spec.PodTemplate.Raw, i.Spec.Suspended = []byte("{}"), true
		return i
	}
	s.Instances = []*v1alpha1.Instance{plain(instancetest.Instance(0, "0"))}
	planned := func(c component.Component) planning.Plan {
		plan, err := MakePlan(g, s, component.Rendering{Component: c})
		assert.NoError(t, err)
		return plan
	}
	plan := planned(componenttest.Clean{})
	assert.False(t, plan.Lease.Release)
	at := slices.IndexFunc(plan.Instances, func(c planning.InstanceChange) bool { return c.Live == nil })
	if assert.GreaterOrEqual(t, at, 0, "its slot is filled, or its store would be forgotten") {
		assert.Equal(t, "kv-2", plan.Instances[at].Desired.Name)
		assert.True(t, plan.Instances[at].Desired.Spec.Suspended, "without a pod")
	}

	s.RetiredSlots = map[int32]bool{2: true}
	assert.True(t, planned(componenttest.Clean{}).Lease.Release, "no member is made in the slot of a retired claim")
	s.RetiredSlots = nil

	recreated := plain(instancetest.Instance(2, "new"))
	s.Instances = append(s.Instances, recreated)
	plan = planned(componenttest.Clean{})
	assert.False(t, plan.Lease.Release, "what was begun is to be seen by its mark first")
	assert.Equal(t, member.Restart, plan.Disrupted["kv-2"])

	instancetest.MarkRestarting(recreated)
	plan = planned(componenttest.ToUndo{})
	assert.False(t, plan.Lease.Release)
	assert.Contains(t, plan.Calls, component.Call{Verb: component.RestoreStore, Instance: "kv-2"})
	assert.True(t, planned(componenttest.Clean{}).Lease.Release)
}

func TestAPodThatKeepsRunningNamesTheGroupThatMustStopFirst(t *testing.T) {
	g := &v1alpha1.TiKVGroup{}
	g.Spec.Suspended = true
	i := instancetest.Instance(1, "uid")
	i.Status.PodUID = "pod"
	says := func(r component.Rendering) string {
		return notReadyOutcome(planning.Inputs{Group: g, Snapshot: observation.Snapshot{Instances: []*v1alpha1.Instance{i}}, Rendering: r}, disruption.EmptyResult()).Message
	}
	assert.Equal(t, "pod kv-1 still runs: TiDBGroup db has to stop first", says(component.Rendering{MaySuspend: verdict.Refuse("TiDBGroup db has to stop first")}))
	i.Spec.Suspended = true
	assert.Equal(t, "pod kv-1 is still stopping", says(component.Rendering{MaySuspend: verdict.Refuse("TiDBGroup db has to stop first")}))
}

// P11: what holds a roll up is told of while volumes change.
func TestAVolumeChangeDoesNotHideAHeldRoll(t *testing.T) {
	grows := step.Wait("Instance", member.WaitDeadline, v1alpha1.ReasonVolumeChanging, "it grows")
	crashes := step.Wait("Instance", member.WaitDeadline, v1alpha1.ReasonContainerCrashing, "it crashes")
	held := step.Wait("PD", member.WaitDeadline, v1alpha1.ReasonUpdateHeld, "it is held")
	assert.Equal(t, held, mostImportant(grows, held, step.Done()))
	assert.Equal(t, grows, mostImportant(grows, step.Done(), step.Done()))
	assert.Equal(t, crashes, mostImportant(crashes, held, grows))
}

// P5: a deleted store of a suspended group stops, and starts again to leave.
func TestADeletedMemberStopsWithItsGroup(t *testing.T) {
	g := &v1alpha1.TiKVGroup{}
	i := instancetest.MarkDeleted(instancetest.Instance(1, "uid"))
	open := component.Rendering{Component: componenttest.Clean{}, Gate: gate.Result{Open: true}, MaySuspend: verdict.Allow()}
	stops := func(r component.Rendering) bool {
		return deletingInstance(planning.Inputs{Group: g, Rendering: r}, i, disruption.EmptyResult(), component.Eviction{}).Spec.Suspended
	}
	assert.False(t, stops(open))
	g.Spec.Suspended = true
	assert.True(t, stops(open))
	assert.False(t, stops(component.Rendering{Component: componenttest.Clean{}, MaySuspend: verdict.Refuse("TiDBGroup db has to stop first")}))
	i.Spec.Suspended, g.Spec.Suspended = true, false
	assert.False(t, stops(open))
	assert.True(t, stops(component.Rendering{Component: componenttest.Clean{}}), "PD is to be Ready first")
}
