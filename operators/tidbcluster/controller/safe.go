package controller

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/gate"
	"github.com/tidb-groups/tidb-groups/shared/origin"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/verdict"
)

// The umbrella stops nothing: what may be stopped is for each group's operator
// to say. Its one destructive step is deleting a group that the spec does not name
// any more. A slip in a list must not cost data, so a group that holds some, or may,
// is kept until it has given it away or a user consents by its name. act.go
// guards the step with a live read and preconditions.

// listRemovedGroups returns the groups of the cluster that are not wanted, by kind and name.
func listRemovedGroups(c *v1alpha1.TidbCluster, s snapshot, wanted []v1alpha1.Group) []v1alpha1.Group {
	var out []v1alpha1.Group
	for key, g := range s.groups {
		named := slices.ContainsFunc(wanted, func(w v1alpha1.Group) bool { return keyOf(w) == key })
		if owner := metav1.GetControllerOf(g); owner != nil && owner.UID == c.UID && !named {
			out = append(out, g)
		}
	}
	slices.SortFunc(out, func(a, b v1alpha1.Group) int {
		return cmp.Or(cmp.Compare(a.GroupKind(), b.GroupKind()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return out
}

// mayDelete allows a group to be deleted that holds nothing, and says what one holds.
// It goes by what the group itself says, and by nothing that is older than its spec:
// only one that is to have no members and has none is known to make none any more.
func mayDelete(g v1alpha1.Group) verdict.Verdict {
	status := g.GetGroupStatus()
	if live, ok := g.(*v1alpha1.PDGroup); ok {
		if n := len(live.Status.Members); n > 0 {
			return verdict.Refusef("its PD has %d members", n)
		}
		return verdict.Refuse("its members are PD's data")
	}
	if info, _ := v1alpha1.LookupComponent(g.GroupKind()); info.Stateless || isEmpty(g) {
		return verdict.Allow()
	}
	if holds := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionHoldsRegions); holds != nil {
		return verdict.Refuse(holds.Message)
	}
	if n := len(listStores(g)); n > 0 {
		return verdict.Refusef("its %d stores are in PD and may hold regions", n)
	}
	return verdict.Refusef("its %d members may hold data", g.GetReplicas())
}

// isEmpty reports whether a group of stores is to have no members, and has none.
func isEmpty(g v1alpha1.Group) bool {
	status := g.GetGroupStatus()
	return g.GetReplicas() == 0 && status.Replicas == 0 && len(listStores(g)) == 0 &&
		gate.FindCurrentCondition(status.Conditions, g.GetGeneration(), v1alpha1.ConditionUpToDate) != nil
}

// listStores are those of a group that PD has, as its status says.
func listStores(g v1alpha1.Group) []v1alpha1.StoreStatus {
	if live, ok := g.(v1alpha1.StoreGroup); ok {
		return live.GetStoreStatus().Stores
	}
	return nil
}

// allowsRemoval reports whether a user has allowed a group to be deleted with its data.
func allowsRemoval(c *v1alpha1.TidbCluster, name string) bool {
	return slices.ContainsFunc(strings.Split(c.Annotations[v1alpha1.AnnotationAllowRemoval], ","), func(allowed string) bool {
		return strings.TrimSpace(allowed) == name
	})
}

// consentTo is the value of the annotation that allows one more of the groups to be deleted that the spec
// no longer names. A consent to any other group is done with: a later one of that name is not meant.
func consentTo(c *v1alpha1.TidbCluster, g v1alpha1.Group, gone []v1alpha1.Group) string {
	var out []string
	for _, other := range gone {
		if allowsRemoval(c, other.GetName()) {
			out = append(out, other.GetName())
		}
	}
	return strings.Join(append(out, g.GetName()), ",")
}

// keptGroupOutcome says of a group that holds something why it is still there, and both ways on.
// One that a user has scaled to 0 is on its way, and says how far it is.
func keptGroupOutcome(c *v1alpha1.TidbCluster, g v1alpha1.Group, holds string, gone []v1alpha1.Group, overdue bool) step.Outcome {
	name := g.GroupKind() + " " + g.GetName()
	if _, pd := g.(*v1alpha1.PDGroup); !pd && g.GetReplicas() == 0 {
		if o := groupOutcome(groupChange{desired: g, live: g}, overdue); o.Kind != step.KindDone {
			return o
		}
		return step.Wait("groups", waitDeadline, v1alpha1.ReasonDraining, name+" is deleted when its last member has left")
	}
	allow := consentTo(c, g, gone)
	ways := origin.OfGroup(g).PutBack() + "; "
	if _, pd := g.(*v1alpha1.PDGroup); !pd {
		ways += fmt.Sprintf("or scale it to 0 first: kubectl -n %s scale %s %s --replicas=0; ", c.Namespace, strings.ToLower(g.GroupKind()), g.GetName())
	}
	o := step.Stall(v1alpha1.ReasonEntryRemoved, fmt.Sprintf("the spec no longer names %s, which is kept because %s: %sor consent to its loss: kubectl -n %s annotate --overwrite tidbcluster %s '%s=%s'",
		name, holds, ways, c.Namespace, c.Name, v1alpha1.AnnotationAllowRemoval, allow))
	o.After = waitDeadline
	return o
}
