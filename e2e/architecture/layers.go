package architecture

import (
	"fmt"
	"slices"
	"strings"
)

// layer is a package of the planner that the group operators share, or of one operator.
type layer struct {
	// name of the package below its module.
	name string
	// does says in a few words what the package decides or does.
	does string
	// uses are the other layers that it imports.
	uses []string
	// pure says that it neither reads nor changes the world.
	pure bool
}

// plannerLayers are the packages of the planner, each below those that use it.
func plannerLayers() []layer {
	return []layer{
		{name: "member", does: "questions about one Instance", pure: true},
		{name: "observation", does: "the Snapshot that is decided from", uses: []string{"member"}, pure: true},
		{name: "reading", does: "fills the Snapshot", uses: []string{"member", "observation"}},
		{name: "component", does: "what the planner asks of a kind", uses: []string{"member", "observation"}, pure: true},
		{name: "planning", does: "the plan", uses: []string{"component", "member", "observation"}, pure: true},
		{name: "rollout", does: "which revision, and when", uses: []string{"component", "member", "observation", "planning"}, pure: true},
		{name: "budget", does: "the PodDisruptionBudget", uses: []string{"observation"}, pure: true},
		{name: "onlineconfig", does: "configuration without a restart", uses: []string{"component", "member", "planning", "rollout"}, pure: true},
		{name: "disruption", does: "who may be stopped now", uses: []string{"component", "member", "observation", "planning", "rollout"}, pure: true},
		{name: "scaling", does: "which members there are", uses: []string{"component", "member", "observation", "planning", "rollout"}, pure: true},
		{name: "group", does: "the steps of a plan", uses: []string{"component", "disruption", "member", "observation", "onlineconfig", "planning", "rollout", "scaling"}, pure: true},
		{name: "groupstatus", does: "conditions and counts", uses: []string{"member", "observation", "planning", "rollout"}, pure: true},
		{name: "storestate", does: "which store is whose", uses: []string{"component", "groupstatus", "member", "observation"}, pure: true},
		{name: "placement", does: "where stores and peers may lie", uses: []string{"component", "member", "observation", "scaling", "storestate"}, pure: true},
		{name: "failover", does: "which stores are dead", uses: []string{"member", "storestate"}, pure: true},
		{name: "safety", does: "which stores may stop now", uses: []string{"component", "member", "observation", "placement", "storestate"}, pure: true},
		{name: "departure", does: "which stores leave for good", uses: []string{"component", "failover", "member", "safety", "storestate"}, pure: true},
		{name: "leaders", does: "moves leaders away and back", uses: []string{"component", "departure", "disruption", "member", "placement", "storestate"}, pure: true},
		{name: "removal", does: "takes stores out of the cluster", uses: []string{"component", "departure", "failover", "leaders", "member", "placement", "safety", "storestate"}, pure: true},
		{name: "store", does: "what TiKV and TiFlash have in common", uses: []string{"component", "departure", "failover", "groupstatus", "leaders", "member", "observation", "placement", "removal", "rollout", "safety", "storestate"}},
		{name: "execution", does: "carries the plan out", uses: []string{"component", "groupstatus", "member", "observation", "planning", "reading", "rollout"}},
		{name: "reconciler", does: "the loop of every group operator", uses: []string{"execution", "planning", "reading"}},
	}
}

// operatorLayers are the packages of operators beside their controllers, each below those
// that use it.
func operatorLayers() []layer {
	return []layer{
		{name: "backup/progress", does: "how far the tool of a run is"},
		{name: "backup/result", does: "what the pod of a run leaves", pure: true},
		{name: "backup/failure", does: "why a run failed", uses: []string{"backup/result"}},
		{name: "backup/storage", does: "the files of a backup, and whose they are", uses: []string{"backup/failure"}},
		{name: "backup/database", does: "the TiDB that is copied or written", uses: []string{"backup/failure"}},
		{name: "backup/schema", does: "what a logical backup has and TiDB Lightning does not make", uses: []string{"backup/database", "backup/failure", "backup/storage"}},
		{name: "backup/cluster", does: "what BR connects to, and leaves in PD"},
		{name: "backup/runner", does: "the program in the pod", uses: []string{"backup/cluster", "backup/database", "backup/failure", "backup/progress", "backup/result", "backup/schema", "backup/storage"}},
		{name: "backup/jobtemplate", does: "the Jobs of runs", uses: []string{"backup/progress"}},
		{name: "backup/basis", does: "the Backups that a log goes on from", uses: []string{"backup/jobtemplate", "backup/result"}, pure: true},
		{name: "backup/job", does: "what becomes of a run", uses: []string{"backup/basis", "backup/jobtemplate", "backup/progress", "backup/result"}, pure: true},
		{name: "pdgroup/bootstrap", does: "who makes PD's cluster, and how a member starts", pure: true},
		{name: "pdgroup/membership", does: "who is a member, and who may join", uses: []string{"pdgroup/bootstrap"}, pure: true},
		{name: "pdgroup/recovery", does: "PD rebuilt from one member", uses: []string{"pdgroup/bootstrap"}, pure: true},
		{name: "pdgroup/persisted", does: "the configuration that PD stores", uses: []string{"pdgroup/membership", "pdgroup/recovery"}, pure: true},
		{name: "pdgroup/voting", does: "who may stop, leave or be given up", uses: []string{"pdgroup/bootstrap", "pdgroup/membership"}, pure: true},
		{name: "tidbgroup/failover", does: "servers for those that do not serve", pure: true},
		{name: "instance/observation", does: "what is known of an Instance", pure: true},
		{name: "instance/planning", does: "the plan for an Instance", pure: true},
		{name: "instance/storage", does: "what Kubernetes says of a claim", pure: true},
		{name: "instance/refusal", does: "what the API server's answer to a write means", uses: []string{"instance/observation", "instance/planning", "instance/storage"}, pure: true},
		{name: "instance/podstate", does: "in which state the pod is", uses: []string{"instance/observation", "instance/planning"}, pure: true},
		{name: "instance/podtemplate", does: "what pod is asked for, and what a change takes", uses: []string{"instance/planning", "instance/podstate"}, pure: true},
		{name: "instance/volumeclaim", does: "which claims are made, changed and kept", uses: []string{"instance/observation", "instance/planning", "instance/storage"}, pure: true},
	}
}

// maxLines is how many lines a package of the product may have without its tests: as much
// as one can hold in the head.
const maxLines = 1200

// drawLayers is the picture of the layers in docs/architecture.md. An arrow points to what is
// imported; one that follows from others is left out.
func drawLayers(all []layer) string {
	at := map[string]layer{}
	for _, l := range all {
		at[l.name] = l
	}
	var below func(name, sought string) bool
	below = func(name, sought string) bool {
		return slices.ContainsFunc(at[name].uses, func(u string) bool { return u == sought || below(u, sought) })
	}
	var out strings.Builder
	out.WriteString("```text\n")
	for _, l := range slices.Backward(all) {
		direct := slices.DeleteFunc(slices.Clone(l.uses), func(u string) bool {
			return slices.ContainsFunc(l.uses, func(other string) bool { return other != u && below(other, u) })
		})
		row := fmt.Sprintf("%-13s %-36s --> %s", l.name, l.does, strings.Join(direct, ", "))
		fmt.Fprintln(&out, strings.TrimRight(row, "-> "))
	}
	out.WriteString("```\n")
	return out.String()
}
