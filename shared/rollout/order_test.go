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

// TiDB's documentation has TiCDC upgraded before the others: an older one does not know the changes
// of a newer database. It knows older ones.
func TestGRP04WhatIsUpgradedFirstIsWaitedForWhileItRolls(t *testing.T) {
	cdc := &v1alpha1.TiCDCGroup{ObjectMeta: metav1.ObjectMeta{Name: "cdc", Namespace: "ns", Generation: 2}}
	for name, c := range map[string]struct {
		edit func()
		open bool
	}{
		"one that has arrived":                        {func() {}, true},
		"one that rolls":                              {func() { cdc.Status.UpdateRevision = "s" }, false},
		"one that has not seen its spec yet":          {func() { cdc.Generation = 3 }, false},
		"one that crashes as it was":                  {func() { cdc.Status.ReadyReplicas = 0 }, true},
		"one that is being created":                   {func() { cdc.Status.CurrentRevision = "" }, true},
		"one without members":                         {func() { cdc.Status.UpdateRevision, cdc.Status.Replicas = "s", 0 }, true},
		"one that is suspended":                       {func() { cdc.Status.UpdateRevision, cdc.Spec.Suspended = "s", true }, true},
		"one that is deleted":                         {func() { cdc.Status.UpdateRevision, cdc.DeletionTimestamp = "s", &metav1.Time{} }, true},
		"one that waits for the database to be whole": {func() { cdc.Status.UpdateRevision, cdc.Status.Conditions[0].Status = "s", metav1.ConditionFalse }, true},
	} {
		t.Run(name, func(t *testing.T) {
			cdc.Generation, cdc.DeletionTimestamp, cdc.Spec.Suspended = 2, nil, false
			cdc.Status = v1alpha1.TiCDCGroupStatus{}
			cdc.Status.ObservedGeneration, cdc.Status.Replicas, cdc.Status.ReadyReplicas, cdc.Status.CurrentRevision, cdc.Status.UpdateRevision = 2, 3, 3, "r", "r"
			cdc.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionDependenciesReady, Status: metav1.ConditionTrue, ObservedGeneration: 2}}
			c.edit()
			s := observation.Snapshot{Groups: []v1alpha1.Group{cdc}}
			for _, g := range []v1alpha1.Group{&v1alpha1.PDGroup{}, &v1alpha1.TiFlashGroup{}, &v1alpha1.TiKVGroup{}, &v1alpha1.TiDBGroup{}} {
				gate := RollGate(g, s)
				assert.Equal(t, c.open, gate.Open, "%s: %s", g.GroupKind(), gate.Message)
				assert.True(t, MaySuspend(cdc, observation.Snapshot{Groups: []v1alpha1.Group{g}}).IsAllowed(), "it stops before what it reads from")
			}
			for _, g := range []v1alpha1.Group{&v1alpha1.TiProxyGroup{}, &v1alpha1.TiCDCGroup{}} {
				assert.True(t, RollGate(g, s).Open, g.GroupKind())
			}
		})
	}
}
