package podstate

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/conditions"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// graceDelay is for how long what only a user can fix may look as if it went by
// itself: an image that a registry has just not delivered, a crash that is the only one.
const graceDelay = 30 * time.Second

// GraceLeft returns how long it takes until a wait counts as one for a user; zero if
// it does, negative if it never will.
func GraceLeft(set *conditions.Set, o step.Outcome, now time.Time) time.Duration {
	part := v1alpha1.ConditionPodReady
	switch o.Reason {
	case v1alpha1.ReasonImagePullFailed, v1alpha1.ReasonContainerCrashing, v1alpha1.ReasonContainerConfigError, v1alpha1.ReasonMissingReference, v1alpha1.ReasonPodRejected:
	case v1alpha1.ReasonStorageClassMissing, v1alpha1.ReasonClaimRejected, v1alpha1.ReasonQuotaExceeded, v1alpha1.ReasonLimitRangeExceeded:
		part = v1alpha1.ConditionVolumesReady
	default:
		return -1
	}
	c := set.Get(part)
	if c.Status != metav1.ConditionFalse || c.Reason != o.Reason || o.Kind != step.KindWait && o.Kind != step.KindFail {
		return -1
	}
	return max(graceDelay-now.Sub(c.LastTransitionTime.Time), 0)
}

// StallAfterGrace makes a wait that has lasted a stall, which is what a pipeline goes by.
func StallAfterGrace(set *conditions.Set, o step.Outcome, now time.Time) step.Outcome {
	if GraceLeft(set, o, now) == 0 {
		o.Kind = step.KindStall
	}
	return o
}
