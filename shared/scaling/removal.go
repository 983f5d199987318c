package scaling

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/planning"
	"github.com/tidb-groups/tidb-groups/shared/rollout"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/workload"
)

// PlanRemoval chooses the members that leave: those whose Instance is being deleted, and
// as many as there are more than wanted.
func PlanRemoval(g v1alpha1.Group, s observation.Snapshot, r component.Rendering, surge int32, revision string) planning.Removal {
	out := planning.Removal{Candidates: map[string]component.Disruption{}, Waiting: step.Done()}
	var staying []*v1alpha1.Instance
	for _, i := range s.Instances {
		switch {
		case !workload.IsOwned(g, i):
		case i.DeletionTimestamp == nil:
			staying = append(staying, i)
		case member.HasMemberFinalizer(i) && !r.Component.RestartsWhenDeleted(i):
			addCandidate(&out, g, s, r, component.Disruption{Instance: i, Verb: member.Remove, Why: planning.ReasonDeleted, Revision: revision})
		}
	}
	surplus := len(staying) - int(g.GetReplicas()+r.Extra+surge)
	if surplus <= 0 || g.GetComponentSpec().Suspended {
		return out
	}
	why := fmt.Sprintf("spec.replicas is %d", g.GetReplicas())
	slices.SortStableFunc(staying, removalOrder(g, r, component.Disruption{Verb: member.Remove, Why: why, Revision: revision}))
	leaving := staying[:surplus]
	fresh := slices.DeleteFunc(slices.Clone(leaving), func(i *v1alpha1.Instance) bool { return i.Spec.Retire })
	if may := r.Component.AllowsRemoval(leaving); !may.IsAllowed() && len(fresh) > 0 {
		out.Waiting = step.Wait("PD", member.WaitDeadline, v1alpha1.ReasonScaleInRefused, may.Reason())
		leaving = slices.DeleteFunc(slices.Clone(leaving), func(i *v1alpha1.Instance) bool { return !i.Spec.Retire })
	}
	for _, i := range leaving {
		if len(out.Candidates) >= r.Component.MaxConcurrentRemovals() && !i.Spec.Retire {
			if len(out.Candidates) == 0 { // else that one says how far it is
				out.Waiting = step.Worst(out.Waiting, step.Wait("Instance", member.WaitDeadline, v1alpha1.ReasonDraining,
					fmt.Sprintf("Instance %s (%s) leaves when the pod of the one before it has stopped: kubectl -n %s get pods", i.Name, why, i.Namespace)))
			}
			break
		}
		addCandidate(&out, g, s, r, component.Disruption{Instance: i, Verb: member.Remove, Why: cmp.Or(member.ReplacementReason(g, i).Text(), why), Revision: revision})
	}
	return out
}

// addCandidate adds a member that is to leave. The user may hold back what would stop a
// member that serves. For a member that needs the Lease this is checked when the Lease is
// to be taken.
func addCandidate(out *planning.Removal, g v1alpha1.Group, s observation.Snapshot, r component.Rendering, d component.Disruption) {
	if !r.Component.NeedsLease(d) && !r.Component.IsNotServing(d.Instance) && !d.Instance.Spec.Retire {
		if hold := rollout.CheckUserHolds(g, s, r, d, ""); hold.Kind != step.KindDone {
			out.Waiting = step.Worst(out.Waiting, hold)
			return
		}
	}
	out.Candidates[d.Instance.Name] = d
}

// removalOrder orders the members of which some are to leave by a disruption: first those
// that are to be replaced for their volumes, then those that leave already, those that a
// user named, those that do not serve, then as the component ranks them, then the newest.
func removalOrder(g v1alpha1.Group, r component.Rendering, d component.Disruption) func(a, b *v1alpha1.Instance) int {
	rank := func(i *v1alpha1.Instance) int {
		d.Instance = i
		return r.Component.Rank(d)
	}
	return func(a, b *v1alpha1.Instance) int {
		first := func(holds func(*v1alpha1.Instance) bool) int {
			switch x, y := holds(a), holds(b); {
			case x && !y:
				return -1
			case y && !x:
				return 1
			}
			return 0
		}
		return cmp.Or(
			first(func(i *v1alpha1.Instance) bool { return member.VolumeReplacementReason(g, i).IsGiven() }),
			first(func(i *v1alpha1.Instance) bool { return i.Spec.Retire }),
			first(member.IsReplaceRequested),
			first(member.IsRemovedFirst),
			first(r.Component.IsNotServing),
			cmp.Compare(rank(a), rank(b)),
			cmp.Compare(b.Spec.Slot, a.Spec.Slot),
		)
	}
}
