package recovery

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/planning"
	"github.com/tidb-groups/tidb-groups/shared/workload"
)

// MakePlan is what the phase calls for that the status names. It rests on nothing
// that may be broken: neither on what the spec asks for now, nor on PD, nor on the
// disruption Lease, whose holder may be among the dead.
func MakePlan(g *v1alpha1.PDGroup, s observation.Snapshot) (planning.Plan, error) {
	plan := planning.Plan{Disruptions: planning.NoDisruptions()}
	r := g.Status.Recovery
	if g.Spec.Paused {
		return plan, nil
	}
	for _, i := range s.Instances {
		switch {
		case i.UID == r.Survivor.UID && (r.Phase == v1alpha1.RecoveryStopping || r.Phase == v1alpha1.RecoveryForcing && !startsForced(i) && !runsNothingElse(g, s)):
			// It stays as it is until all others have stopped.
		case i.UID == r.Survivor.UID:
			desired := desiredInstance(g, i)
			desired.Spec.Suspended = false
			if err := setForced(desired, r.Phase == v1alpha1.RecoveryForcing); err != nil {
				return plan, err
			}
			plan.Instances = append(plan.Instances, planning.InstanceChange{Live: i, Desired: desired})
		case isDiscarded(r, i):
			discardMember(&plan, g, s, i)
		}
	}
	return plan, nil
}

// runsNothingElse reports whether nothing runs but the survivor, nor will: no other member,
// and nothing that PD serves.
func runsNothingElse(g *v1alpha1.PDGroup, s observation.Snapshot) bool {
	return FindRunning(g, s.Instances) == "" && FindRunningClient(s.ClusterInstances) == nil
}

// discardMember stops a member for good, and lets its Instance go when PD serves
// without it. One that a user has deleted goes before, once the recovery cannot be taken back:
// until then PD may need its data again. If its claim is going as well, its pod cannot be
// stopped with the Instance kept, and it goes at once.
func discardMember(plan *planning.Plan, g *v1alpha1.PDGroup, s observation.Snapshot, i *v1alpha1.Instance) {
	desired := desiredInstance(g, i)
	desired.Spec.Suspended = true
	// Whatever the spec says of claims: these may be all that is left.
	desired.Spec.ClaimRetention = v1alpha1.ClaimRetention{WhenDeleted: v1alpha1.RetainClaim, WhenScaled: v1alpha1.RetainClaim}
	said := meta.IsStatusConditionTrue(i.Status.Conditions, v1alpha1.ConditionDrained)
	deleted := i.DeletionTimestamp != nil
	r := g.Status.Recovery
	rebuilt := r.Phase == v1alpha1.RecoveryRetiring && IsAlone(g, s.PD, r.Survivor.Name)
	// That it has left is said first, and done when everybody can see it: its
	// claims are marked for it.
	goes := r.Phase != v1alpha1.RecoveryStopping || s.IsClaimDeleted(i.Name)
	plan.Drained[i.Name] = deleted && goes || rebuilt
	switch {
	case said && deleted:
		member.RemoveMemberFinalizer(desired)
	case said && rebuilt && member.HasStopped(i):
		plan.Deletes = append(plan.Deletes, i)
	}
	plan.Instances = append(plan.Instances, planning.InstanceChange{Live: i, Desired: desired})
}

// desiredInstance is an Instance as this operator has made it.
func desiredInstance(g *v1alpha1.PDGroup, live *v1alpha1.Instance) *v1alpha1.Instance {
	out := &v1alpha1.Instance{ObjectMeta: workload.Meta(g, live.Name), Spec: *live.Spec.DeepCopy()}
	out.OwnerReferences = live.OwnerReferences
	out.Finalizers = member.Finalizers(live)
	for _, key := range []string{v1alpha1.AnnotationDisruption, v1alpha1.AnnotationRestarted, v1alpha1.AnnotationLeadersEvicted} {
		if value, there := live.Annotations[key]; there {
			metav1.SetMetaDataAnnotation(&out.ObjectMeta, key, value)
		}
	}
	return out
}

// StartsMember reports whether a plan lets a member start that is not running: one that
// is new, or was suspended. It must not be one that PD is being rebuilt without.
func StartsMember(plan planning.Plan) bool {
	return slices.ContainsFunc(plan.Instances, func(c planning.InstanceChange) bool {
		return c.Live == nil || c.Live.Spec.Suspended && !c.Desired.Spec.Suspended
	})
}

// ForcesMember reports whether a plan starts a member with Flag that was not started so
// before: from then on it knows no other member.
func ForcesMember(plan planning.Plan) bool {
	return slices.ContainsFunc(plan.Instances, func(c planning.InstanceChange) bool {
		return startsForced(c.Desired) && !startsForced(c.Live)
	})
}

// BeginsRecovery reports whether a record begins a recovery that the status does not name.
func BeginsRecovery(g *v1alpha1.PDGroup, next *v1alpha1.PDRecovery) bool {
	return isUnderWay(next) && (g.Status.Recovery == nil || g.Status.Recovery.Request != next.Request)
}

// ContradictsPD reports whether what PD says at this moment forbids what a plan does
// to go on with a recovery, or to begin one.
func ContradictsPD(g *v1alpha1.PDGroup, next *v1alpha1.PDRecovery, view pd.View) bool {
	if BeginsRecovery(g, next) {
		return hasQuorum(g, view)
	}
	return !IsAlone(g, view, g.Status.Recovery.Survivor.Name)
}

// NeedsEvent reports whether a record's message is worth an Event, which said
// something else before.
func NeedsEvent(before, after *v1alpha1.PDRecovery) bool {
	return after != nil && (before == nil || before.Phase != after.Phase || before.Request != after.Request)
}

// ReleasesInstances reports whether a plan lets Instances go for which PD must serve without
// them.
func ReleasesInstances(g *v1alpha1.PDGroup, plan planning.Plan) bool {
	return g.Status.Recovery.Phase == v1alpha1.RecoveryRetiring && slices.ContainsFunc(plan.Instances, func(c planning.InstanceChange) bool { return plan.Drained[c.Live.Name] })
}
