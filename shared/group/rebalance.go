package group

import (
	"slices"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// Spread is how the members of a group lie over the places that spec.rebalance names.
type Spread struct {
	// By is spec.rebalance; empty for members that stay where they are.
	By string
	// Unknown says why it is not known how they lie; empty if it is.
	Unknown string
	// Uneven says which places differ too much; empty if none do.
	Uneven string
	// Needless says that they would lie evenly enough without the member that was added.
	Needless bool
	// Fruitless says why the member that was added does not help: without it they would
	// lie as evenly as without the one that would leave, or that one is needed. Empty if
	// it helps, or if none was added.
	Fruitless string
}

// Newcomer returns the member that spec.rebalance has added and in exchange for which
// nobody leaves yet; nil if there is none.
func Newcomer(g v1alpha1.Group, instances []*v1alpha1.Instance) *v1alpha1.Instance {
	at := slices.IndexFunc(instances, func(i *v1alpha1.Instance) bool {
		return Ours(g, i) && i.DeletionTimestamp == nil && !i.Spec.Retire && i.Annotations[v1alpha1.AnnotationRebalance] != ""
	})
	if at < 0 {
		return nil
	}
	return instances[at]
}

// planRebalance returns how many members there are to be beyond those wanted so that
// one of the fullest place can leave, and why; and whether the mark of the one that was
// added stays. One more is made while nothing else is on the way, and marked; when all
// are Ready one leaves, and with that the mark goes, if it makes them lie more evenly
// than they did. If it does not, the new one stays and none is added: it would come to
// the same place, again and again. So each round brings the group nearer to its end,
// whatever the scheduler does.
func planRebalance(g v1alpha1.Group, s Snapshot, r Rendering, living []resident, revision string) (extra int32, keep bool, o step.Outcome) {
	none := step.Done()
	wait := func(text string) step.Outcome {
		return step.Wait("Instance", waitDeadline, v1alpha1.ReasonRebalancing, text)
	}
	if r.Spread.By == "" || s.PDGroup == nil || s.PDGroup.Status.ClusterID == "" {
		return 0, false, none
	}
	newcomer := Newcomer(g, s.Instances)
	if g.GetComponentSpec().Suspended {
		return 0, newcomer != nil, none
	}
	staying, busy, restarts, leaves := 0, false, false, false
	for _, m := range living {
		if m.live.DeletionTimestamp != nil || ToReplace(g, m.live) != "" {
			return 0, false, none // who was added takes the place of that one
		}
		staying++
		leaves = leaves || m.live.Spec.Retire
		busy = busy || !m.live.Spec.Retire && !Settled(m.live)
		restarts = restarts || m.restart != ""
	}
	surplus := staying - int(g.GetReplicas()+r.Extra)
	switch {
	case newcomer != nil && surplus > 0:
		switch {
		case r.Silent:
			return 1, true, none
		case leaves, r.Spread.Needless:
			return 0, false, none
		case busy:
			return 1, true, wait("Instance " + newcomer.Name + " has come so that another one may leave a fuller place, when all are Ready")
		case r.Spread.Unknown != "":
			return 1, true, wait(r.Spread.Unknown)
		case r.Spread.Fruitless != "":
			return 1, true, wait(r.Spread.Fruitless)
		}
		return 0, true, none
	case newcomer != nil:
		return 0, r.Extra > 0, none // it is one of those that are wanted, if not in place of one that is to come back
	case r.Silent || surplus != 0 || busy || restarts || leaves:
		return 0, false, none // that comes first, and tells of itself
	case r.Spread.Unknown != "":
		return 0, false, wait(r.Spread.Unknown)
	case r.Spread.Uneven == "":
		return 0, false, none
	}
	if hold := putOff(g, s, r, Disruption{Instance: living[0].live, Verb: Remove, Why: r.Spread.Uneven}, revision); hold.Kind != step.KindDone {
		return 0, false, hold
	}
	return 1, false, wait(r.Spread.Uneven + ": one more is made, and then one leaves the fullest")
}
