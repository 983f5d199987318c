package member_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/member"
)

func TestFinalizersOfAnInstance(t *testing.T) {
	both := []string{v1alpha1.FinalizerMember, v1alpha1.FinalizerInstance}
	assert.Equal(t, both, member.Finalizers(nil), "it is made with both")

	live := &v1alpha1.Instance{}
	assert.Equal(t, both, member.Finalizers(live), "one made by an older version gets them")

	now := metav1.Now()
	live.DeletionTimestamp = &now
	live.Finalizers = []string{metav1.FinalizerDeleteDependents}
	assert.Empty(t, member.Finalizers(live), "an Instance that is being deleted takes no new ones")

	live.Finalizers = slices.Concat(both, []string{metav1.FinalizerDeleteDependents})
	assert.Equal(t, both, member.Finalizers(live))

	desired := &v1alpha1.Instance{ObjectMeta: metav1.ObjectMeta{Finalizers: member.Finalizers(live)}}
	member.RemoveMemberFinalizer(desired)
	assert.Equal(t, []string{v1alpha1.FinalizerInstance}, desired.Finalizers, "its pod has not stopped yet")
}

// What cannot be read may run.
func TestAnInstanceHasStoppedWhenItsOperatorHasSeenThatItHasNoPod(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*v1alpha1.Instance)
		stopped bool
	}{
		"it has":                    {func(*v1alpha1.Instance) {}, true},
		"it was never reported":     {func(i *v1alpha1.Instance) { i.Status.Conditions = nil }, true},
		"its pod is there":          {func(i *v1alpha1.Instance) { i.Status.PodUID = "p" }, false},
		"it is not suspended":       {func(i *v1alpha1.Instance) { i.Spec.Suspended = false }, false},
		"its operator is behind":    {func(i *v1alpha1.Instance) { i.Generation = 3 }, false},
		"its pod could not be read": {func(i *v1alpha1.Instance) { i.Status.Conditions[0].Status = metav1.ConditionUnknown }, false},
	} {
		i := &v1alpha1.Instance{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
		i.Spec.Suspended, i.Status.ObservedGeneration = true, 2
		i.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionPodReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonSuspended}}
		c.change(i)
		assert.Equal(t, c.stopped, member.HasStopped(i), name)
		assert.Equal(t, c.stopped, member.IsAtRest(i), name)
		if c.stopped && len(i.Status.Conditions) > 0 {
			i.Status.Conditions[0].Reason = v1alpha1.ReasonPodOfAnotherOwner
			assert.False(t, member.IsAtRest(i), "another owner's pod may be that of the same member")
		}
	}
}
