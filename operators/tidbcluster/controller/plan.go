package controller

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/tidbcluster/bootstrap"
	"github.com/tidb-groups/tidb-groups/shared/gate"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// waitDeadline is after how long the operator looks again by itself at what a
// watch should have reported.
const waitDeadline = time.Minute

// clusterPlan is what to do about a TidbCluster, and why.
type clusterPlan struct {
	// Apply are the groups to apply, each with its live object, nil if none.
	Apply []groupChange
	// Prune are groups of ours that the spec no longer names and that may go.
	Prune []v1alpha1.Group
	// Keep are groups of ours that the spec no longer names and that hold data, or may.
	Keep []v1alpha1.Group
	// Bootstrap is what to do about spec.bootstrapFrom.
	Bootstrap bootstrap.Plan
	// Outcome is why the cluster is not what its spec asks for.
	Outcome step.Outcome
}

type groupChange struct {
	desired, live v1alpha1.Group
	// made says that the group was made: act notes it.
	made bool
}

// makePlan decides what to do about a TidbCluster. It is pure.
func makePlan(c *v1alpha1.TidbCluster, s snapshot) clusterPlan {
	var p clusterPlan
	if c.DeletionTimestamp != nil {
		p.Outcome = step.Wait("groups", waitDeadline, v1alpha1.ReasonDeleting, describeDeletion(c, s))
		return p
	}
	p.Bootstrap = bootstrap.MakePlan(c, s.bootstrap)
	wanted := renderGroups(c)
	foreignPD := false // the PDGroup of that name belongs to another owner; it comes first of all groups
	for _, g := range wanted {
		if of, is := g.(v1alpha1.ClientGroup); is && p.Bootstrap.Closed {
			of.Close()
		}
		key := keyOf(g)
		live := s.groups[key]
		if live != nil && !ownsGroup(c, live) {
			p.Outcome = step.Worst(p.Outcome, foreignGroupOutcome(c, live))
			foreignPD = foreignPD || key.kind == v1alpha1.KindPDGroup
			continue
		}
		change := groupChange{desired: g, live: live}
		if foreignPD && (live == nil || upgradesGroup(change)) {
			// It would join another owner's database, or overtake its PD.
			p.Outcome = step.Worst(p.Outcome, step.Wait("groups", waitDeadline, v1alpha1.ReasonWaitingForGroups, key.kind+" "+key.name+" waits for a PDGroup of this TidbCluster"))
			continue
		}
		p.Apply = append(p.Apply, change)
	}
	p.remove(c, s, listRemovedGroups(c, s, wanted))
	p.Prune = slices.DeleteFunc(p.Prune, func(g v1alpha1.Group) bool { return p.lacksKind(wanted, g.GroupKind()) })
	p.Outcome = step.Worst(p.Outcome, worstGroupOutcome(p.Apply, s.overdue), p.Bootstrap.Outcome)
	return p
}

// describeDeletion says what keeps a cluster that is being deleted: the first of its groups that is deleted, too.
func describeDeletion(c *v1alpha1.TidbCluster, s snapshot) string {
	wanted := renderGroups(c)
	for _, g := range append(wanted, listRemovedGroups(c, s, wanted)...) {
		live := s.groups[keyOf(g)]
		if live == nil || !ownsGroup(c, live) {
			continue
		}
		if said := meta.FindStatusCondition(live.GetGroupStatus().Conditions, v1alpha1.ConditionUpToDate); said != nil && said.Reason == v1alpha1.ReasonDeleting {
			return "the groups are being deleted: " + g.GroupKind() + " " + g.GetName() + ": " + said.Message
		}
	}
	return "the groups are being deleted"
}

// lacksKind reports whether a group of a kind is wanted and not applied: the one that its entry had
// before it was renamed may be all that there is.
func (p *clusterPlan) lacksKind(wanted []v1alpha1.Group, kind string) bool {
	return slices.ContainsFunc(wanted, func(g v1alpha1.Group) bool {
		return g.GroupKind() == kind && !slices.ContainsFunc(p.Apply, func(change groupChange) bool { return keyOf(change.desired) == keyOf(g) })
	})
}

// foreignGroupOutcome is what is to be done about another owner's group under a name of the cluster's.
func foreignGroupOutcome(c *v1alpha1.TidbCluster, live v1alpha1.Group) step.Outcome {
	kind, name := live.GroupKind(), live.GetName()
	if o := bootstrap.AwaitLeaving(c, kind, live); o.Kind != step.KindDone {
		return o
	}
	warning := ""
	if removal := mayDelete(live); !removal.IsAllowed() {
		warning = ", although " + removal.Reason()
	}
	return step.Stall(v1alpha1.ReasonNameConflict, fmt.Sprintf(
		"%s %s exists and was not made by this TidbCluster: rename one of the two, or delete the group%s (kubectl -n %s delete %s %s)", kind, name, warning, c.Namespace, kind, name))
}

// remove decides about the groups that the spec no longer names: one that holds
// data is kept, and a paused cluster keeps all.
func (p *clusterPlan) remove(c *v1alpha1.TidbCluster, s snapshot, gone []v1alpha1.Group) {
	paused, last := 0, step.Done()
	for _, g := range gone {
		removal := mayDelete(g)
		switch {
		case g.GetDeletionTimestamp() != nil:
			last = step.Worst(last, step.Wait("groups", waitDeadline, v1alpha1.ReasonDeleting, fmt.Sprintf("%s %s, which the spec no longer names, is being deleted", g.GroupKind(), g.GetName())))
		case c.Spec.Paused:
			paused++
		case !removal.IsAllowed() && !allowsRemoval(c, g.GetName()):
			p.Keep = append(p.Keep, g)
			p.Outcome = step.Worst(p.Outcome, keptGroupOutcome(c, g, removal.Reason(), gone, s.overdue[keyOf(g)]))
		default:
			p.Prune = append(p.Prune, g)
		}
	}
	if paused > 0 {
		p.Outcome = step.Worst(p.Outcome, step.Wait(v1alpha1.KindTidbCluster, waitDeadline, v1alpha1.ReasonPaused,
			fmt.Sprintf("paused: %d groups that the spec no longer names are kept; set spec.paused to false to go on: those that hold no data are deleted then", paused)))
	}
	p.Outcome = step.Worst(p.Outcome, last)
}

// ownsGroup reports whether a group was made by the cluster, or by one of its name
// that was deleted with its groups left behind.
func ownsGroup(c *v1alpha1.TidbCluster, g v1alpha1.Group) bool {
	if owner := metav1.GetControllerOf(g); owner != nil {
		return owner.UID == c.UID
	}
	return g.GetLabels()[v1alpha1.LabelUmbrella] == c.Name
}

// worstGroupOutcome returns why the groups are not what their specs ask for: of the most pressing one,
// or the first among equals. A group that needs a user is the most pressing.
func worstGroupOutcome(changes []groupChange, overdue map[groupKey]bool) step.Outcome {
	worst := step.Done()
	for _, change := range changes {
		worst = step.Worst(worst, groupOutcome(change, overdue[keyOf(change.desired)]))
	}
	return worst
}

// groupOutcome reads one group's conditions. overdue says that its operator should have
// looked at it by now.
func groupOutcome(change groupChange, overdue bool) step.Outcome {
	name := change.desired.GroupKind() + " " + change.desired.GetName()
	if change.live == nil {
		return step.Wait("groups", waitDeadline, v1alpha1.ReasonCreating, "creating "+name)
	}
	conditions, generation := change.live.GetGroupStatus().Conditions, change.live.GetGeneration()
	if c := gate.FindCurrentCondition(conditions, generation, v1alpha1.ConditionStalled); c != nil {
		return step.Stall(c.Reason, name+": "+c.Message)
	}
	for _, conditionType := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionUpToDate} {
		c := gate.FindCurrentCondition(conditions, generation, conditionType)
		switch {
		case c == nil:
			o := step.Wait("groups", gate.ProcessingTimeout, v1alpha1.ReasonWaitingForGroups, name+" was changed, and its operator has not processed it yet")
			if overdue {
				o.After, o.Message = waitDeadline, name+" has no current status: is its operator running?"
			}
			return o
		case c.Status == metav1.ConditionTrue, conditionType == v1alpha1.ConditionReady && (c.Reason == v1alpha1.ReasonSuspended || change.live.GetReplicas() == 0):
		default:
			return step.Wait("groups", waitDeadline, c.Reason, name+": "+c.Message)
		}
	}
	return step.Done()
}
