package scenario

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/e2e/objects"
	"github.com/tidb-groups/tidb-groups/e2e/remedy"
	"github.com/tidb-groups/tidb-groups/e2e/workload"
)

// Kinds of Kubernetes that scenarios know by name.
const (
	kindPod   = "Pod"
	kindClaim = "PersistentVolumeClaim"
)

// Result is what has come of a scenario.
type Result struct {
	// Scenario by name.
	Scenario string
	// Took is how long it took, start of operators included.
	Took time.Duration
	// Outcome is all objects at the end, normalised, in the order of their keys.
	Outcome []Object
	// Restarts is how often each pod was replaced; pods that never were are
	// left out.
	Restarts map[string]int
	// Bootstraps is how many PD clusters were bootstrapped for each PDGroup.
	Bootstraps map[string]int
	// Alarms that the scenario does not tolerate.
	Alarms []string
	// Violations of what the watcher looks after.
	Violations []string
	// Requests of the operators to the API server.
	Requests map[Request]int
	// Tried and Pasted are the messages with a command that were seen in a status, and
	// those whose command a step has pasted.
	Tried, Pasted []string
	// Workload is what the scenario's workload has reported; nil if it has none.
	Workload *workload.Report
}

// Bad returns every alarm and violation as an error, nil if there is none.
func (r Result) Bad() error {
	var out []error
	for _, alarm := range r.Alarms {
		out = append(out, errors.New("alarm: "+alarm))
	}
	for _, violation := range r.Violations {
		out = append(out, errors.New("violation: "+violation))
	}
	return errors.Join(out...)
}

// Unproved returns the commands that the scenario is said to prove and does not, as an
// error: see package remedy.
func (r Result) Unproved() error {
	proof, err := remedy.ProofOf(r.Scenario)
	if err != nil {
		return err
	}
	var out []error
	for _, what := range proof.Missing(r.Tried, r.Pasted) {
		out = append(out, errors.New(what))
	}
	return errors.Join(out...)
}

// Differences says in what the result differs from that of an undisturbed run:
// in objects, in how often pods were replaced, and in clusters that were bootstrapped.
// Requests and times may differ.
func (r Result) Differences(undisturbed Result) []string {
	out := Compare(r.Outcome, undisturbed.Outcome)
	differ := func(what string, have, want map[string]int) {
		both := maps.Clone(have)
		maps.Copy(both, want)
		for _, name := range slices.Sorted(maps.Keys(both)) {
			if have[name] != want[name] {
				out = append(out, fmt.Sprintf("%s %s: %d, undisturbed %d", what, name, have[name], want[name]))
			}
		}
	}
	differ("replacements of pod", r.Restarts, undisturbed.Restarts)
	differ("PD clusters bootstrapped for", r.Bootstraps, undisturbed.Bootstraps)
	return out
}

// countReplacements is how often pods were replaced whose names begin with prefix.
func countReplacements(uids map[objects.Key][]types.UID, prefix string) int {
	out := 0
	for name, n := range CountRestarts(uids) {
		if strings.HasPrefix(name, prefix) {
			out += n
		}
	}
	return out
}

// CountRestarts is how often each pod was replaced, by the UIDs that each object had.
func CountRestarts(uids map[objects.Key][]types.UID) map[string]int {
	out := map[string]int{}
	for key, all := range uids {
		if key.Kind == kindPod && len(all) > 1 {
			out[key.Name] = len(all) - 1
		}
	}
	return out
}
