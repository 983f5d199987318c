package rollout

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/gate"
	"github.com/tidb-groups/tidb-groups/shared/lease"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/planning"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/testkit/instancetest"
)

// So do those that are restarted at the same time.
func TestAWholeBatchCountsForTheCanary(t *testing.T) {
	s := observation.Snapshot{Instances: []*v1alpha1.Instance{instancetest.Instance(0, "a"), instancetest.Instance(1, "b"), instancetest.Instance(2, "c")}}
	stops := planning.Disruptions{Lease: planning.LeaseChange{
		Take: &component.Disruption{Instance: s.Instances[0], Verb: member.Restart}, Batch: []lease.BatchMember{{Instance: "kv-2"}},
	}}
	assert.EqualValues(t, 2, CountUpdated(stops.WithPlannedRevisions(s, "new"), "new"))
}

// P7: what all members had before is what a canary is taken back to, though there are
// more that have it than may have a new revision.
func TestACanaryIsUndoneByRevertingTheEdit(t *testing.T) {
	most := int32(1)
	g := &v1alpha1.TiKVGroup{}
	g.Spec.Disruption, g.Status.CurrentRevision = &v1alpha1.Disruption{UpdateAtMost: &most}, "old"
	s := observation.Snapshot{Instances: []*v1alpha1.Instance{instancetest.Instance(0, "a"), instancetest.Instance(1, "b"), instancetest.Instance(2, "c")}}
	for n, rev := range []string{"old", "old", "new"} {
		s.Instances[n].Spec.Revision = rev
	}
	r := component.Rendering{RollGate: gate.Result{Open: true}}
	back := component.Disruption{Instance: s.Instances[2], Verb: member.Restart}
	on := component.Disruption{Instance: s.Instances[1], Verb: member.Restart}
	assert.Equal(t, step.KindDone, CheckUserHolds(g, s, r, back, "old").Kind)
	assert.Equal(t, v1alpha1.ReasonUpdateHeld, CheckUserHolds(g, s, r, on, "new").Reason)
	assert.Equal(t, step.KindDone, CheckUserHolds(g, s, r, on, "third").Kind, "another edit has a canary of its own")
}

// P7: nor is a member whose node does not answer kept from it.
func TestACanaryOnAnUnreachableNodeIsUndone(t *testing.T) {
	most := int32(1)
	g := &v1alpha1.TiKVGroup{}
	g.Spec.Disruption, g.Status.CurrentRevision = &v1alpha1.Disruption{UpdateAtMost: &most}, "old"
	i := instancetest.Instance(0, "a")
	i.Spec.Revision = "new"
	i.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionPodReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNodeUnreachable}}
	s, r, d := observation.Snapshot{Instances: []*v1alpha1.Instance{i}}, component.Rendering{RollGate: gate.Result{Open: true}}, component.Disruption{Instance: i, Verb: member.Restart}
	assert.Equal(t, step.KindDone, HoldForStart(g, s, r, d, "old").Kind)
	i.Spec.Revision = "old"
	assert.Equal(t, v1alpha1.ReasonUpdateHeld, HoldForStart(g, s, r, d, "new").Reason)
}

// A member that was suspended starts only now: Ready is False since it was resumed.
func TestAMemberThatWasResumedIsLeftAloneWhileItStarts(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	ago := func(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }
	g := &v1alpha1.TiKVGroup{}
	g.Spec.Disruption, g.Status.CurrentRevision = &v1alpha1.Disruption{Paused: true}, "old"
	i := instancetest.Instance(0, "a")
	i.Spec.Revision, i.CreationTimestamp = "old", ago(24*time.Hour)
	i.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonSuspended, LastTransitionTime: ago(time.Hour)}}
	s, r, d := observation.Snapshot{Now: now, Instances: []*v1alpha1.Instance{i}}, component.Rendering{RollGate: gate.Result{Open: true}}, component.Disruption{Instance: i, Verb: member.Restart}
	assert.Equal(t, startTimeout, HoldForStart(g, s, r, d, "new").After, "its operator has not seen it yet")
	ready := &i.Status.Conditions[0]
	ready.Reason, ready.LastTransitionTime = v1alpha1.ReasonPodNotReady, ago(10*time.Second)
	hold := HoldForStart(g, s, r, d, "new")
	assert.Equal(t, v1alpha1.ReasonUpdateHeld, hold.Reason)
	assert.Equal(t, startTimeout-10*time.Second, hold.After)
	ready.LastTransitionTime = ago(startTimeout)
	assert.Equal(t, step.KindDone, HoldForStart(g, s, r, d, "new").Kind)
}
