package bench

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tidb-groups/tidb-groups/e2e/rig"
)

// Write is a kind of write that an operation takes.
type Write struct {
	// Operator, Verb and Resource of the requests.
	Operator, Verb, Resource string
	// Most is how many a cluster of 3 PD, 3 TiKV and 2 TiDB takes at most. Where AtLeast is
	// the same the number is always the same; where not, it depends on what comes together.
	AtLeast, Most int
	// Why it is written.
	Why string
}

// Operation is something that happens to a cluster of 3 PD, 3 TiKV and 2 TiDB, and all that the
// operators may write for it.
type Operation struct {
	// Name of the operation, and What is done.
	Name, What string
	// Writes are all of it, from all quiet to all quiet again.
	Writes []Write
	// Reconciles by controller; one that is not named may have none.
	Reconciles map[string]Reconciled
}

// Reconciled is how often a controller reconciles in an operation.
type Reconciled struct {
	// Seen is how often it was at most when the budget was made; beyond Most something goes
	// round in circles.
	Seen, Most int
}

// StartBudget lists every write of the start of a cluster of 3 PD, 3 TiKV and 2 TiDB.
func StartBudget() []Write {
	out := []Write{
		{"tidbcluster", "patch", "pdgroups", 1, 1, "the group"},
		{"tidbcluster", "patch", "tikvgroups", 1, 1, "the group"},
		{"tidbcluster", "patch", "tidbgroups", 1, 1, "the group"},
		{"tidbcluster", "patch", "tidbclusters/status", 2, 12, "Ready, UpToDate, and what the cluster waits for: once in two seconds while only words change"},
		{"tidbcluster", "create", "events", 2, 3, "the groups made; Ready; UpToDate, if it is another start of one that was so"},
		{"instance", "create", "persistentvolumeclaims", 6, 6, "one for each volume"},
		{"instance", "create", "pods", 8, 8, "one for each member"},
		{"instance", "patch", "instances/status", 14, 32, "for each member: its claims, before the pod is made; its pod, with its node and address, if it is not Ready within two seconds; Ready"},
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
		{"pdgroup", 0, 0, [2]int{3, 6}, [2]int{2, 10}, [2]int{2, 3}},
		{"tikvgroup", 3, 1, [2]int{3, 6}, [2]int{2, 12}, [2]int{2, 3}},
		{"tidbgroup", 2, 2, [2]int{2, 4}, [2]int{2, 10}, [2]int{2, 3}},
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
			Write{g.name, "patch", "instances/status", g.memberStatus[0], g.memberStatus[1], "what PD or the server says of a member: serving; before that, if it does not within three seconds"},
			Write{g.name, "patch", g.name + "s/status", g.groupStatus[0], g.groupStatus[1], "Ready, UpToDate, and what the group waits for: once a second while only words change"},
			Write{g.name, "create", "events", g.recorded[0], g.recorded[1], "the Instances made; Ready; what needs a user"},
		)
	}
	return out
}

// Excess says what of an operation's cost is not as budgeted. What a conflict has refused was no
// write.
func Excess(of Operation, cost Cost) []string {
	left := cost.written()
	var out []string
	for _, w := range of.Writes {
		request := rig.Request{Operator: w.Operator, Verb: w.Verb, Resource: w.Resource}
		if n := left[request]; n < w.AtLeast || n > w.Most {
			out = append(out, fmt.Sprintf("%s: %s %s: %d times, not %s", w.Operator, w.Verb, w.Resource, n, w.span()))
		}
		delete(left, request)
	}
	for _, request := range sortedRequests(left) {
		out = append(out, fmt.Sprintf("%s: %s %s: %d times, which no line of the budget allows", request.Operator, request.Verb, request.Resource, left[request]))
	}
	reconciled := cost.ofOperators()
	for _, name := range slices.Sorted(maps.Keys(reconciled)) {
		if n, most := reconciled[name], of.Reconciles[name].Most; n > most {
			out = append(out, fmt.Sprintf("%s: %d reconciles, not at most %d", name, n, most))
		}
	}
	return out
}

// written are the writes that were not refused for a conflict.
func (c Cost) written() map[rig.Request]int {
	out := map[rig.Request]int{}
	for request, n := range c.Requests {
		if n -= c.Conflicts[request]; request.Writes() && n > 0 {
			out[request] = n
		}
	}
	return out
}

// ofOperators are the reconciles of the operators: those of the simulated world, whose
// controllers are called actors, cost the operators nothing.
func (c Cost) ofOperators() map[string]int {
	out := maps.Clone(c.Reconciles)
	maps.DeleteFunc(out, func(name string, n int) bool { return n == 0 || strings.HasSuffix(name, rig.ActorSuffix) })
	return out
}

// sortedRequests are requests by operator, resource and verb.
func sortedRequests(counts map[rig.Request]int) []rig.Request {
	return slices.SortedFunc(maps.Keys(counts), func(a, b rig.Request) int {
		return cmp.Or(strings.Compare(a.Operator, b.Operator), strings.Compare(a.Resource, b.Resource), strings.Compare(a.Verb, b.Verb))
	})
}

func (w Write) span() string {
	if w.AtLeast == w.Most {
		return fmt.Sprint(w.Most)
	}
	return fmt.Sprintf("%d to %d", w.AtLeast, w.Most)
}

// Start is the start of a cluster of 3 PD, 3 TiKV and 2 TiDB.
func Start() Operation {
	return Operation{Name: startCluster, What: "A user creates a TidbCluster.", Writes: StartBudget(), Reconciles: reconciledBy(123, 20, 53, 51, 43)}
}
