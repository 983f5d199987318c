package groupstatus

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/conditions"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/planning"
	"github.com/tidb-groups/tidb-groups/shared/revision"
	"github.com/tidb-groups/tidb-groups/shared/rollout"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/testkit/instancetest"
)

// P7: what all have had is not what a canary has while one that has not is being deleted.
func TestTheCurrentRevisionCountsMembersThatAreBeingDeleted(t *testing.T) {
	g := &v1alpha1.TiKVGroup{}
	g.Name, g.UID = "kv", "g"
	g.Status.CurrentRevision = "old"
	s := observation.Snapshot{Instances: []*v1alpha1.Instance{instancetest.MarkDeleted(instancetest.Instance(0, "a")), instancetest.Instance(1, "b")}}
	for n, rev := range []string{"old", "new"} {
		s.Instances[n].Spec.Revision, s.Instances[n].Status.Revision, s.Instances[n].Status.PodUID = rev, rev, "pod"
		s.Instances[n].Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue}}
	}
	plan := planning.Plan{Target: revision.Target{Hash: "new"}}
	now := func() string {
		return Report(g, s, plan, Work{Acted: step.Done(), Serving: true}, conditions.New(nil, 1, time.Unix(1800000000, 0))).CurrentRevision
	}
	assert.Equal(t, "old", now())
	s.Instances = s.Instances[1:]
	assert.Equal(t, "new", now())
}

// P7: nor is it what one has that has left: its pod may take forever to stop.
func TestTheCurrentRevisionIgnoresAMemberThatHasLeft(t *testing.T) {
	g := &v1alpha1.TiKVGroup{ObjectMeta: metav1.ObjectMeta{Name: "kv", Namespace: "ns"}}
	record := func(image string) (revision.Target, appsv1.ControllerRevision) {
		r := component.Rendering{Inputs: image}
		r.Template.Spec.NodeName = image
		target, err := rollout.ResolveTarget(observation.Snapshot{}, r)
		require.NoError(t, err)
		stored, err := rollout.NewRevision(g, target)
		require.NoError(t, err)
		return target, *stored
	}
	before, stored := record("old")
	target, _ := record("new")
	g.Status.CurrentRevision = before.Hash
	ready := metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue}
	s := observation.Snapshot{Instances: []*v1alpha1.Instance{instancetest.MarkDeleted(instancetest.Instance(0, "a")), instancetest.Instance(1, "b")}, Revisions: []appsv1.ControllerRevision{stored}}
	for n, hash := range []string{before.Hash, target.Hash} {
		s.Instances[n].Spec.Revision, s.Instances[n].Status.Revision, s.Instances[n].Status.PodUID = hash, hash, "pod"
		s.Instances[n].Status.Conditions = []metav1.Condition{ready}
	}
	plan := planning.Plan{Target: target}
	for _, left := range []bool{false, true} {
		if left {
			s.Instances[0].Status.Conditions = append(s.Instances[0].Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionDrained, Status: metav1.ConditionTrue})
		}
		want := map[bool]string{false: before.Hash, true: target.Hash}[left]
		assert.Equal(t, want, Report(g, s, plan, Work{Acted: step.Done(), Serving: true}, conditions.New(nil, 1, time.Unix(1800000000, 0))).CurrentRevision)
		old, err := rollout.CurrentTarget(planning.Inputs{Group: g, Snapshot: s, Target: target})
		require.NoError(t, err)
		assert.Equal(t, left, old == nil, "who is made new is made of what the members run")
	}
	s.Instances = s.Instances[:1]
	old, err := rollout.CurrentTarget(planning.Inputs{Group: g, Snapshot: s, Target: target})
	require.NoError(t, err)
	assert.NotNil(t, old, "where all have left, a roll that is put off is still that")
}

// P7: nor is it what the last one is only about to get: it may never serve with it.
func TestTheCurrentRevisionWaitsForAMemberThatHasNotSeenItsSpec(t *testing.T) {
	g := &v1alpha1.TiKVGroup{}
	g.Status.CurrentRevision, g.Status.Version, g.Spec.Version = "old", "v8.5.7", "v8.5.8"
	i := instancetest.Instance(0, "a")
	i.Spec.Revision, i.Generation = "new", 2
	i.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, ObservedGeneration: 1}}
	now := func() v1alpha1.GroupStatus {
		return Report(g, observation.Snapshot{Instances: []*v1alpha1.Instance{i}}, planning.Plan{Target: revision.Target{Hash: "new"}}, Work{Acted: step.Done(), Serving: true}, conditions.New(nil, 1, time.Unix(1800000000, 0)))
	}
	assert.Equal(t, "old", now().CurrentRevision)
	assert.Equal(t, "v8.5.7", now().Version)
	i.Status.Conditions[0].ObservedGeneration = 2
	i.Status.PodUID, i.Status.Revision = "pod", "old"
	assert.Equal(t, "old", now().CurrentRevision, "it is Ready, and its pod was not stopped, as when the group was paused meanwhile")
	i.Status.Revision = "new"
	assert.Equal(t, "new", now().CurrentRevision)
	assert.Equal(t, "v8.5.8", now().Version)
}
