package placement

import (
	"slices"
	"strings"

	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/storestate"
	"github.com/tidb-groups/tidb-groups/shared/topology"
)

// isUnnamed reports whether the last label of a place has no value.
func isUnnamed(place string) bool { return strings.HasSuffix(place, "/") }

// DescribePlace names a place by all its labels.
func DescribePlace(labels, lies []string) string {
	parts, above := make([]string, len(lies)), ""
	for level, place := range lies {
		parts[level], above = placeTitle(labels[level], place, above), place
	}
	return strings.Join(parts, ", ")
}

// placeTitle names a place by its own label, without those of the place above.
func placeTitle(label, place, above string) string {
	return label + " " + strings.TrimPrefix(place, above+"/")
}

// LevelOf returns the level of a location label, -1 if it is none. PD does not tell upper
// from lower case in keys.
func LevelOf(labels []string, key string) int {
	return slices.IndexFunc(labels, func(l string) bool { return strings.EqualFold(l, key) })
}

// nodePlaces are the location labels of members whose PD has none.
func nodePlaces() []string { return []string{"zone", "host"} }

// PlacesOf names where a member is, as places does.
func PlacesOf(c storestate.State, m storestate.Match) []string {
	labels := c.Snapshot.PD.LocationLabels
	if len(labels) > 0 {
		return LabelPlaces(m.Store, labels)
	}
	node := topology.StoreLabels(c.Snapshot.Nodes[m.Instance.Status.NodeName], nodePlaces(), nil)
	return LabelPlaces(&pd.Store{Labels: node}, nodePlaces())
}

// LabelPlaces names where a store is, from the largest place to the smallest, each by
// all its labels: hosts of two zones may have the same name. A label that the
// store lacks is a place as well, unlike any that has a name.
func LabelPlaces(s *pd.Store, labels []string) []string {
	out := make([]string, 0, len(labels))
	path := ""
	for _, key := range labels {
		value := ""
		if s != nil {
			value = LabelOf(*s, key)
		}
		path += "/" + value
		out = append(out, path)
	}
	return out
}
