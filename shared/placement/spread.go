package placement

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/origin"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/scaling"
	"github.com/tidb-groups/tidb-groups/shared/storestate"
	"github.com/tidb-groups/tidb-groups/shared/topology"
	"github.com/tidb-groups/tidb-groups/shared/verdict"
	"github.com/tidb-groups/tidb-groups/shared/workload"
)

// Spread reports how the members lie over the places that spec.rebalance names, of those
// that pods of a template may come to (KV-19). Places are distinguished by PD's
// location-labels as in a scale-in, whose order says who would leave.
func Spread(c storestate.State, template *corev1.PodTemplateSpec, storeLabels map[string]v1alpha1.StoreLabelValue) component.Spread {
	out := component.Spread{By: c.Group.GetStoreSpec().Rebalance}
	if out.By == "" {
		return out
	}
	if out.Unknown = storestate.PDKnown(c).WhyNot(); out.Unknown.IsGiven() {
		return out
	}
	labels, known := c.Snapshot.PD.LocationLabels, "are "+strings.Join(c.Snapshot.PD.LocationLabels, ",")
	if len(labels) == 0 {
		labels, known = nodePlaces(), "are empty, so that only zone and host of the nodes count"
	}
	level := LevelOf(labels, out.By)
	field := origin.OfGroup(c.Group).SharedField("rebalance")
	switch {
	case level < 0:
		out.Unknown = verdict.NewReasonf("%s is %s, and PD's location-labels %s: name one of these, or set location-labels to all labels, with %s where it belongs, from the largest to the smallest: %s", field, out.By, known, out.By, storestate.SetCommand(c, "location-labels", "LABEL,LABEL"))
		return out
	case c.Snapshot.SchedulableNodes == nil:
		out.Unknown = verdict.NewReasonf("%s is %s, and the operators may not read nodes (they may when installed for all namespaces): remove the field, and add and remove stores yourself", field, out.By)
		return out
	}
	labels = labels[:level+1]
	open := openPlaces(c.Snapshot.SchedulableNodes, template, labels, LabelTexts(storeLabels))
	if len(open) == 0 {
		out.Unknown = verdict.NewReasonf("%s is %s, and no node that the pods may run on has all of the labels %s: kubectl get nodes -L %s", field, out.By, strings.Join(labels, ","), topology.NodeLabel(out.By))
		return out
	}
	added := scaling.RebalanceSurplus(c.Group, c.Snapshot.Instances)
	var members, before []place
	for _, m := range c.Stores {
		if m.Instance.DeletionTimestamp != nil || !workload.IsOwned(c.Group, m.Instance) {
			continue
		}
		lies, isNew := PlacesOf(c, m), added != nil && m.Instance.Name == added.Name
		if len(lies) <= level || slices.ContainsFunc(lies[:level+1], isUnnamed) {
			out.Unknown = verdict.NewReasonf("%s is %s, and Instance %s does not have all of the labels %s: %s store, kubectl get nodes -L %s",
				field, out.By, m.Instance.Name, strings.Join(labels, ","), storestate.PDCtl(c.Group), topology.NodeLabel(out.By))
			if !isNew {
				return out
			}
			continue
		}
		members = append(members, place{m.Instance.Name, lies[:level+1]})
		if !isNew {
			before = append(before, members[len(members)-1])
		}
	}
	out.Unneeded = added != nil && !findImbalance(before, open, labels).IsGiven()
	if out.Unknown.IsGiven() {
		return out
	}
	out.Uneven = findImbalance(members, open, labels)
	if added != nil {
		out.NoGain = describeNoGain(c, members, before, added, labels)
	}
	return out
}

// place is a member and where it is, from the largest place to the smallest.
type place struct {
	name   string
	places []string
}

// describeNoGain says why replacing a member is useless: without the leaving member the
// group would be spread no more evenly than before the new one, or that member may not
// leave.
func describeNoGain(c storestate.State, members, before []place, added *v1alpha1.Instance, labels []string) verdict.Reason {
	leaver := slices.MinFunc(members, func(a, b place) int { return c.Order[a.name] - c.Order[b.name] })
	after := slices.DeleteFunc(slices.Clone(members), func(m place) bool { return m.name == leaver.name })
	i := c.Snapshot.Instance(leaver.name)
	if slices.Compare(measureImbalance(after, len(labels)), measureImbalance(before, len(labels))) < 0 {
		if may := CanDoWithout(c, i); !may.IsAllowed() {
			return verdict.NewReasonf("Instance %s was added so that Instance %s can leave, but that one must stay: %s", added.Name, leaver.name, may.Reason())
		}
		return verdict.Reason{}
	}
	if member.IsRemovedFirst(i) {
		return verdict.NewReasonf("Instance %s was added so that another one can leave, but its annotation %s has Instance %s leave, which does not help: kubectl -n %s annotate instance %s %s-",
			added.Name, v1alpha1.AnnotationRemoveFirst, leaver.name, i.Namespace, i.Name, v1alpha1.AnnotationRemoveFirst)
	}
	where := members[slices.IndexFunc(members, func(m place) bool { return m.name == added.Name })].places
	key := labels[len(labels)-1]
	return verdict.NewReasonf("Instance %s was added so that another one can leave, but was scheduled to %s, where it does not help: make room in the emptiest %s, spread the pods with topologySpreadConstraints by %s, "+
		"and remove the added one: kubectl -n %s delete instance %s",
		added.Name, DescribePlace(labels, where), key, topology.NodeLabel(key), c.Group.GetNamespace(), added.Name)
}

// measureImbalance is how unevenly members lie, from the largest places to the smallest: the
// smaller, the more evenly. Sums of squares grow when one moves from a place to one
// that has as many or more.
func measureImbalance(members []place, levels int) []int {
	out := make([]int, levels)
	for level := range levels {
		full := map[string]int{}
		for _, m := range members {
			full[m.places[level]]++
		}
		for _, n := range full {
			out[level] += n * n
		}
	}
	return out
}

// openPlaces returns the places of the nodes that the pods of a template may come to.
func openPlaces(nodes []corev1.Node, template *corev1.PodTemplateSpec, labels []string, own map[string]string) [][]string {
	fit := topology.NewFit(template)
	var out [][]string
	for n := range nodes {
		if !fit.Takes(&nodes[n]) {
			continue
		}
		lies := LabelPlaces(&pd.Store{Labels: topology.StoreLabels(nodes[n].Labels, labels, own)}, labels)
		if !slices.ContainsFunc(lies, isUnnamed) {
			out = append(out, lies)
		}
	}
	return out
}

// findImbalance names two places side by side of which one has at least two members more
// than the other, to which one could come.
func findImbalance(members []place, open [][]string, labels []string) verdict.Reason {
	for level := range labels {
		full, parent, among := map[string]int{}, map[string]string{}, map[string][]string{}
		enter := func(lies []string, n int) {
			place := lies[level]
			if _, known := parent[place]; !known {
				if parent[place] = ""; level > 0 {
					parent[place] = lies[level-1]
				}
				among[parent[place]] = append(among[parent[place]], place)
			}
			full[place] += n
		}
		free := map[string]bool{}
		for _, lies := range open {
			enter(lies, 0)
			free[lies[level]] = true
		}
		for _, m := range members {
			enter(m.places, 1)
		}
		for _, above := range slices.Sorted(maps.Keys(among)) {
			fullest, emptiest := "", ""
			for _, place := range slices.Sorted(slices.Values(among[above])) {
				if fullest == "" || full[place] > full[fullest] {
					fullest = place
				}
				if free[place] && (emptiest == "" || full[place] < full[emptiest]) {
					emptiest = place
				}
			}
			if emptiest != "" && full[fullest]-full[emptiest] > 1 {
				return verdict.NewReasonf("%s has %s of the group, %s has %d", placeTitle(labels[level], fullest, above), storestate.FormatCount(full[fullest], "store"), placeTitle(labels[level], emptiest, above), full[emptiest])
			}
		}
	}
	return verdict.Reason{}
}
