package rollout

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/gate"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/verdict"
)

// Order is the order in which the kinds of a cluster get a new version or configuration.
// They are suspended in reverse. Kinds whose releases are their own have no place in it.
func Order() []string {
	var out []string
	for _, c := range v1alpha1.RolloutOrder() {
		if !c.OwnReleases {
			out = append(out, c.Kind)
		}
	}
	return out
}

// IsBefore reports whether groups of one kind get a new version or configuration before
// those of another.
func IsBefore(kind, other string) bool {
	a, known := v1alpha1.LookupComponent(kind)
	b, also := v1alpha1.LookupComponent(other)
	return known && also && !a.OwnReleases && !b.OwnReleases && a.Rollout < b.Rollout
}

// RollGate opens when all groups of the cluster that come before a group have arrived at
// their specs.
func RollGate(g v1alpha1.Group, s observation.Snapshot) gate.Result {
	for _, other := range s.Groups {
		if other.GetDeletionTimestamp() != nil {
			continue
		}
		if isWaitedFor(other, g) || rollsAhead(other, g) {
			return gate.Result{Message: fmt.Sprintf("%s %s comes first and is not UpToDate: kubectl -n %s describe %s %s",
				other.GroupKind(), other.GetName(), other.GetNamespace(), strings.ToLower(other.GroupKind()), other.GetName())}
		}
	}
	return gate.Result{Open: true}
}

// isWaitedFor reports whether another group comes before a group, and has not arrived at its spec.
func isWaitedFor(other, g v1alpha1.Group) bool {
	if !IsBefore(other.GroupKind(), g.GroupKind()) {
		return false
	}
	status := other.GetGroupStatus()
	c := gate.FindCurrentCondition(status.Conditions, other.GetGeneration(), v1alpha1.ConditionUpToDate)
	return c == nil || c.Status != metav1.ConditionTrue && !hasArrived(status, c.Reason)
}

// rollsAhead reports whether another group, of a kind that is upgraded first, has a roll ahead
// that a group has to wait for. It is not waited for while it waits for the others itself, nor
// for what is no roll: a new database has no members of it yet.
func rollsAhead(other, g v1alpha1.Group) bool {
	first, _ := v1alpha1.LookupComponent(other.GroupKind())
	own, _ := v1alpha1.LookupComponent(g.GroupKind())
	status := other.GetGroupStatus()
	if !first.UpgradedFirst || own.OwnReleases || status.Replicas == 0 || status.CurrentRevision == "" || other.GetComponentSpec().Suspended {
		return false
	}
	waits := meta.IsStatusConditionFalse(status.Conditions, v1alpha1.ConditionDependenciesReady)
	return !waits && (status.ObservedGeneration != other.GetGeneration() || status.CurrentRevision != status.UpdateRevision)
}

// hasArrived reports whether a group that is not UpToDate has no roll ahead that others
// should wait for: all its members have the revision that its spec asks for. A refused
// claim counts as arrived only if all members are there and ready.
func hasArrived(status *v1alpha1.GroupStatus, reason string) bool {
	if status.CurrentRevision != status.UpdateRevision {
		return false
	}
	if slices.Contains([]string{v1alpha1.ReasonQuotaExceeded, v1alpha1.ReasonLimitRangeExceeded, v1alpha1.ReasonClaimRejected}, reason) {
		return status.UpdatedReplicas == status.Replicas && status.ReadyReplicas == status.Replicas
	}
	return IsIndependentOfRoll(reason)
}

// IsIndependentOfRoll reports whether a reason reports something that does not hold up a
// roll: it may end long after, or never.
func IsIndependentOfRoll(reason string) bool {
	return slices.Contains([]string{
		v1alpha1.ReasonNewRendering, v1alpha1.ReasonDraining, v1alpha1.ReasonScaleInRefused, v1alpha1.ReasonVolumeChangePending,
		v1alpha1.ReasonVolumeChanging, v1alpha1.ReasonVolumeChangeFailed, v1alpha1.ReasonVolumeAttributesClassMissing, v1alpha1.ReasonVolumeAttributesUnsupported,
		v1alpha1.ReasonReplacementPending, v1alpha1.ReasonRebalancing, v1alpha1.ReasonEvictingLeaders,
	}, reason)
}

// MaySuspend says whether the pods of a group may stop, or which group of the cluster has to
// stop first. Groups that are not suspended are not waited for.
func MaySuspend(g v1alpha1.Group, s observation.Snapshot) verdict.Verdict {
	for _, other := range s.Groups {
		if !IsBefore(g.GroupKind(), other.GroupKind()) || !other.GetComponentSpec().Suspended || other.GetDeletionTimestamp() != nil {
			continue
		}
		c := gate.FindCurrentCondition(other.GetGroupStatus().Conditions, other.GetGeneration(), v1alpha1.ConditionUpToDate)
		if c == nil || c.Status != metav1.ConditionTrue && !HasStopped(c.Reason) {
			return verdict.Refusef("%s %s has to stop first: kubectl -n %s describe %s %s",
				other.GroupKind(), other.GetName(), other.GetNamespace(), strings.ToLower(other.GroupKind()), other.GetName())
		}
	}
	return verdict.Allow()
}

// HasStopped reports whether a suspended group with this reason has no pod left. One that
// has reports Suspended.
func HasStopped(reason string) bool {
	return slices.Contains([]string{v1alpha1.ReasonNewRendering, v1alpha1.ReasonVolumeChangePending, v1alpha1.ReasonReplacementPending, v1alpha1.ReasonDraining}, reason)
}
