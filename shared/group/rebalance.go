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
	// Fruitless says why the member that was added does not help: without it they would
	// lie as evenly as without the one that would leave. Empty if it helps, or if none
	// was added.
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
// one of the fullest place can leave, and why. One more is made while nothing else is
// on the way, and marked; when all are Ready one leaves, and with it the mark goes, if
// that makes them lie more evenly than they did. If it does not, the new one stays and
// none is added: it would come to the same place, again and again. So each round
// brings the group nearer to its end, whatever the scheduler does.
func planRebalance(g v1alpha1.Group, s Snapshot, r Rendering, living []resident, revision string) (int32, step.Outcome) {
	wait := func(text string) step.Outcome {
		return step.Wait("Instance", waitDeadline, v1alpha1.ReasonRebalancing, text)
	}
	if r.Spread.By == "" || g.GetComponentSpec().Suspended || s.PDGroup == nil || s.PDGroup.Status.ClusterID == "" {
		return 0, step.Done()
	}
	staying, busy, surplus := 0, false, 0
	for _, m := range living {
		if m.live.DeletionTimestamp != nil || ToReplace(g, m.live) != "" {
			return 0, step.Done() // who was added takes the place of that one
		}
		staying++
		busy = busy || !m.live.Spec.Retire && !Settled(m.live)
	}
	surplus = staying - int(g.GetReplicas()+r.Extra)
	newcomer := Newcomer(g, s.Instances)
	switch {
	case newcomer != nil && surplus > 0:
		switch {
		case r.Silent:
			return 1, step.Done()
		case busy:
			return 1, wait("Instance " + newcomer.Name + " has come so that another one may leave a fuller place, when all are Ready")
		case r.Spread.Unknown != "":
			return 1, wait(r.Spread.Unknown)
		case r.Spread.Fruitless != "":
			return 1, wait(r.Spread.Fruitless)
		}
		return 0, step.Done()
	case r.Silent || surplus != 0 || busy || slices.ContainsFunc(living, func(m resident) bool { return m.restart != "" || m.live.Spec.Retire }):
		return 0, step.Done() // that comes first, and tells of itself
	case r.Spread.Unknown != "":
		return 0, wait(r.Spread.Unknown)
	case r.Spread.Uneven == "":
		return 0, step.Done()
	}
	if hold := putOff(g, s, r, Disruption{Instance: living[0].live, Verb: Remove, Why: r.Spread.Uneven}, revision); hold.Kind != step.KindDone {
		return 0, hold
	}
	return 1, wait(r.Spread.Uneven + ": one more is made, and then one leaves the fullest")
}
