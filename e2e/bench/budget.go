package bench

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tidb-groups/tidb-groups/e2e/rig"
)

// Write is a kind of write that the start of a cluster takes.
type Write struct {
	// Operator, Verb and Resource of the requests.
	Operator, Verb, Resource string
	// Most is how many a cluster of 3 PD, 3 TiKV and 2 TiDB takes at most. Where AtLeast is
	// the same the number is always the same; where not, it depends on what comes together.
	AtLeast, Most int
	// Why it is written.
	Why string
}

// Budget lists every write of the start of a cluster of 3 PD, 3 TiKV and 2 TiDB.
func Budget() []Write {
	out := []Write{
		{"tidbcluster", "patch", "pdgroups", 1, 1, "the group"},
		{"tidbcluster", "patch", "tikvgroups", 1, 1, "the group"},
		{"tidbcluster", "patch", "tidbgroups", 1, 1, "the group"},
		{"tidbcluster", "patch", "tidbclusters/status", 4, 20, "a group became Ready, and what the cluster waits for: once a second while only words change"},
		{"tidbcluster", "create", "events", 4, 6, "one for each group, Ready; UpToDate, if later"},
		{"instance", "create", "persistentvolumeclaims", 6, 6, "one for each volume"},
		{"instance", "create", "pods", 8, 8, "one for each member"},
		{"instance", "patch", "instances/status", 16, 40, "for each member: its claims, before the pod is made; its pod, with its node and address, if it is not Ready within two seconds; Ready"},
		{"instance", "patch", "pods", 3, 3, "an initial member of PD's cluster that was bootstrapped joins from now on, whatever becomes of its volume"},
		{"pdgroup", "patch", "instances", 6, 6, "3 Instances, and that initial members join from now on"},
		{"pdgroup", "patch", "services", 2, 2, "the client Service and that of the peers"},
	}
	for _, g := range []struct {
		name                  string
		instances, services   int
		memberStatus          [2]int
		groupStatus, recorded [2]int
	}{
		{"pdgroup", 0, 0, [2]int{3, 9}, [2]int{3, 12}, [2]int{3, 6}},
		{"tikvgroup", 3, 1, [2]int{3, 9}, [2]int{3, 14}, [2]int{2, 5}},
		{"tidbgroup", 2, 2, [2]int{2, 5}, [2]int{3, 12}, [2]int{2, 5}},
	} {
		if g.instances > 0 {
			out = append(out, Write{g.name, "patch", "instances", g.instances, g.instances, "the Instances"})
			out = append(out, Write{g.name, "patch", "services", g.services, g.services, "the Services"})
		}
		out = append(
			out,
			Write{g.name, "patch", "configmaps", 1, 1, "the configuration, immutable"},
			Write{g.name, "patch", "controllerrevisions", 1, 1, "the revision"},
			Write{g.name, "patch", "poddisruptionbudgets", 1, 1, "the budget of the component"},
			Write{g.name, "patch", "instances/status", g.memberStatus[0], g.memberStatus[1], "what PD or the server says of a member: registered, serving"},
			Write{g.name, "patch", g.name + "s/status", g.groupStatus[0], g.groupStatus[1], "what the group waits for, members that became ready, Ready: once a second while only words change"},
			Write{g.name, "create", "events", g.recorded[0], g.recorded[1], "the Instances made, conditions that turned"},
		)
	}
	return out
}

// Excess says what of the writes of one cluster's start is not as budgeted. What a
// conflict has refused was no write.
func Excess(start Cost) []string {
	left := map[rig.Request]int{}
	for request, n := range start.Requests {
		if n -= start.Conflicts[request]; request.Writes() && n > 0 {
			left[request] = n
		}
	}
	var out []string
	for _, w := range Budget() {
		request := rig.Request{Operator: w.Operator, Verb: w.Verb, Resource: w.Resource}
		if n := left[request]; n < w.AtLeast || n > w.Most {
			out = append(out, fmt.Sprintf("%s: %s %s: %d times, not %s", w.Operator, w.Verb, w.Resource, n, w.span()))
		}
		delete(left, request)
	}
	for _, request := range slices.SortedFunc(maps.Keys(left), func(a, b rig.Request) int {
		return cmp.Or(strings.Compare(a.Operator, b.Operator), strings.Compare(a.Resource, b.Resource), strings.Compare(a.Verb, b.Verb))
	}) {
		out = append(out, fmt.Sprintf("%s: %s %s: %d times, which no line of the budget allows", request.Operator, request.Verb, request.Resource, left[request]))
	}
	return out
}

func (w Write) span() string {
	if w.AtLeast == w.Most {
		return fmt.Sprint(w.Most)
	}
	return fmt.Sprintf("%d to %d", w.AtLeast, w.Most)
}
