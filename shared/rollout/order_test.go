package rollout

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/observation"
)

func TestASuspendedGroupWithoutPodsIsNotWaitedFor(t *testing.T) {
	pd := &v1alpha1.PDGroup{ObjectMeta: metav1.ObjectMeta{Name: "pd", Namespace: "ns"}}
	for reason, waits := range map[string]bool{
		v1alpha1.ReasonSuspended: true, v1alpha1.ReasonProgressing: true, v1alpha1.ReasonVolumeChangeFailed: true,
		v1alpha1.ReasonNewRendering: false, v1alpha1.ReasonVolumeChangePending: false, v1alpha1.ReasonDraining: false,
	} {
		t.Run(reason, func(t *testing.T) {
			other := &v1alpha1.TiDBGroup{ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: "ns", Generation: 2}}
			other.Spec.Suspended = true
			other.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionUpToDate, Status: metav1.ConditionFalse, Reason: reason, ObservedGeneration: 2}}
			got := MaySuspend(pd, observation.Snapshot{Groups: []v1alpha1.Group{other}})
			assert.Equal(t, waits, !got.IsAllowed(), got.Reason())
			if waits {
				assert.Contains(t, got.Reason(), "TiDBGroup db has to stop first: kubectl -n ns describe tidbgroup db")
			}
			other.Generation = 3
			assert.False(t, MaySuspend(pd, observation.Snapshot{Groups: []v1alpha1.Group{other}}).IsAllowed(), "it has not seen its spec yet")
		})
	}
}

func TestARefusedVolumeGrowthDoesNotDelayTheRollOfOtherGroups(t *testing.T) {
	pd := &v1alpha1.PDGroup{ObjectMeta: metav1.ObjectMeta{Name: "pd", Namespace: "ns"}}
	pd.Status.Replicas, pd.Status.UpdatedReplicas, pd.Status.ReadyReplicas, pd.Status.CurrentRevision, pd.Status.UpdateRevision = 3, 3, 3, "r", "r"
	open := func(reason string) bool {
		pd.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionUpToDate, Status: metav1.ConditionFalse, Reason: reason}}
		return RollGate(&v1alpha1.TiKVGroup{}, observation.Snapshot{Groups: []v1alpha1.Group{pd}}).Open
	}
	for _, reason := range []string{v1alpha1.ReasonClaimRejected, v1alpha1.ReasonQuotaExceeded, v1alpha1.ReasonLimitRangeExceeded} {
		assert.True(t, open(reason), reason)
	}
	assert.False(t, open(v1alpha1.ReasonPodPending))
	pd.Status.ReadyReplicas = 2
	assert.False(t, open(v1alpha1.ReasonQuotaExceeded), "it may be the claim of a member that rolls")
	pd.Status.ReadyReplicas, pd.Status.UpdateRevision = 3, "s"
	assert.False(t, open(v1alpha1.ReasonClaimRejected), "it has not rolled itself yet")
}

// GRP-04: a scale-in or a volume that is told of may hide a roll that is still ahead.
func TestAGroupThatHasNotRolledYetIsWaitedFor(t *testing.T) {
	kv := &v1alpha1.TiKVGroup{ObjectMeta: metav1.ObjectMeta{Name: "kv", Namespace: "ns"}}
	for _, reason := range []string{
		v1alpha1.ReasonDraining, v1alpha1.ReasonScaleInRefused, v1alpha1.ReasonVolumeChanging, v1alpha1.ReasonVolumeChangeFailed,
		v1alpha1.ReasonVolumeChangePending, v1alpha1.ReasonVolumeAttributesClassMissing, v1alpha1.ReasonVolumeAttributesUnsupported, v1alpha1.ReasonNewRendering,
		v1alpha1.ReasonEvictingLeaders,
	} {
		kv.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionUpToDate, Status: metav1.ConditionFalse, Reason: reason}}
		for update, open := range map[string]bool{"r": true, "s": false} {
			kv.Status.CurrentRevision, kv.Status.UpdateRevision = "r", update
			gate := RollGate(&v1alpha1.TiDBGroup{}, observation.Snapshot{Groups: []v1alpha1.Group{kv}})
			assert.Equal(t, open, gate.Open, "%s at r, to be at %s: %s", reason, update, gate.Message)
		}
	}
}
