package settings

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/origin"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/verdict"
)

const (
	// askAgain is how soon a member that could not be asked is asked again.
	askAgain = 5 * time.Second
	// tryAgain is how soon a member that has refused an item is given it again:
	// nothing shows when it would take it.
	tryAgain = time.Minute
)

// Judge answers for the running members of a group. All of it is pure.
type Judge struct {
	// Table of the component.
	Table Table
	// Group that the members belong to, and its policy.
	Group  v1alpha1.Group
	Policy v1alpha1.ConfigUpdatePolicy
	// Running is what the members were last seen to run with, and Now when that is
	// judged.
	Running map[string]observation.RunningConfig
	Now     time.Time
}

var _ component.OnlineConfig = Judge{}

// AppliesOnline implements component.OnlineConfig.
func (j Judge) AppliesOnline(old, wanted map[string]string) verdict.Verdict {
	if j.Policy != v1alpha1.ConfigOnline {
		return verdict.Refuse("spec.configUpdate is not " + string(v1alpha1.ConfigOnline))
	}
	return j.Table.AppliesOnline(old, wanted)
}

// Progress implements component.OnlineConfig. What is not known, or is being changed at the
// moment, is never done, and never a reason to restart a member.
func (j Judge) Progress(i *v1alpha1.Instance, others []map[string]string, wanted map[string]string) component.ConfigProgress {
	seen, known := j.Running[i.Name]
	switch {
	case !known:
		return component.ConfigProgress{Outcome: step.Wait("status port", askAgain, v1alpha1.ReasonConfigPending, "Instance "+i.Name+" is being asked what configuration it runs with")}
	case seen.Err != nil:
		return component.ConfigProgress{Outcome: step.RetryAfter(j.retryDelay(seen, askAgain), v1alpha1.ReasonRequestFailed, j.describeUnreachable(i, seen.Err))}
	}
	given := component.ConfigProgress{Outcome: step.Done()}
	dropped := j.Table.droppedItems(others, wanted)
	for _, key := range slices.Sorted(maps.Keys(dropped)) {
		if j.mayRunWith(seen, key, dropped[key]) {
			given.Stuck = verdict.NewReason(key + " goes back to its default")
			break
		}
	}
	lacks := j.missingItems(seen, j.Table.differingItems(others, wanted))
	if len(lacks) == 0 {
		if seen.Giving {
			// It was ordered for other files, and may still arrive.
			given.Outcome = step.Wait("status port", askAgain, v1alpha1.ReasonConfigPending, "Instance "+i.Name+" is given a configuration that is no longer wanted")
		}
		return given
	}
	given.Apply = !seen.Giving
	given.Outcome = step.Wait("status port", time.Minute, v1alpha1.ReasonConfigPending, fmt.Sprintf("Instance %s is given %s", i.Name, joinKeys(lacks)))
	refused, answer := findRefusals(seen, lacks)
	switch {
	case len(refused) == 0 && seen.Failed != nil:
		given.Outcome = step.RetryAfter(askAgain, v1alpha1.ReasonRequestFailed, j.describeUnreachable(i, seen.Failed))
		return given
	case len(refused) == 0:
		return given
	}
	given.Apply = given.Apply && j.Now.Sub(seen.Tried.Time) >= tryAgain
	given.Outcome = step.Stall(v1alpha1.ReasonConfigRefused, fmt.Sprintf("Instance %s does not take %s while it runs (%s): set it back, or set %s to %s: %s",
		i.Name, strings.Join(refused, ", "), answer, j.groupOrigin().Field("configUpdate"), v1alpha1.RestartForConfig, j.groupOrigin().Edit()))
	given.Outcome.After = j.retryDelay(seen, tryAgain)
	return given
}

// Refused implements component.OnlineConfig.
func (j Judge) Refused(wanted map[string]string) verdict.Reason {
	values := j.Table.values(wanted)
	for _, name := range slices.Sorted(maps.Keys(j.Running)) {
		if refused, answer := findRefusals(j.Running[name], values); len(refused) > 0 {
			return verdict.NewReasonf("Instance %s does not take %s (%s)", name, strings.Join(refused, ", "), answer)
		}
	}
	return verdict.Reason{}
}

// retryDelay returns how long it is until a member is turned to again. One that is being
// asked or given something at the moment wakes the group up.
func (j Judge) retryDelay(seen observation.RunningConfig, again time.Duration) time.Duration {
	if left := again - j.Now.Sub(seen.Tried.Time); left > 0 {
		return left
	}
	return askAgain
}

// describeUnreachable says why a member cannot be asked, or given something, and the way round it.
func (j Judge) describeUnreachable(i *v1alpha1.Instance, err error) string {
	round := fmt.Sprintf("have it restarted: kubectl -n %s annotate instance %s %s=$(date +%%s) --overwrite", i.Namespace, i.Name, v1alpha1.AnnotationRestart)
	if j.Policy == v1alpha1.ConfigOnline && i.Spec.Revision != j.Group.GetGroupStatus().UpdateRevision {
		round = fmt.Sprintf("set %s to %s: %s", j.groupOrigin().Field("configUpdate"), v1alpha1.RestartForConfig, j.groupOrigin().Edit())
	}
	return fmt.Sprintf("Instance %s %v: see kubectl -n %s logs %s, or %s", i.Name, err, i.Namespace, i.Name, round)
}

// groupOrigin is where the group is edited.
func (j Judge) groupOrigin() origin.Origin { return origin.OfGroup(j.Group) }

// findRefusals names those of some items that a member has refused, and its answer.
// Of several that it was given at once, those that it may have taken all the same
// are named only if it is unsure of all.
func findRefusals(seen observation.RunningConfig, lacks map[string]Value) (items []string, answer string) {
	var unsure []string
	for _, key := range slices.Sorted(maps.Keys(lacks)) {
		r, was := seen.Refused[key]
		if !was || r.Value != lacks[key].Plain {
			continue
		}
		answer = r.Answer
		text := fmt.Sprintf("%s = %s", key, lacks[key].Text)
		if r.Uncertain {
			unsure = append(unsure, text)
		} else {
			items = append(items, text)
		}
	}
	if len(items) == 0 {
		return unsure, answer
	}
	return items, answer
}

// missingItems returns those of some items that a member does not run with.
func (j Judge) missingItems(seen observation.RunningConfig, items map[string]Value) map[string]Value {
	out := map[string]Value{}
	for key, value := range items {
		has, shown := seen.Values[key]
		if item, _ := j.Table.Item(key); item.Blind || !shown {
			has, shown = seen.Taken[key]
		}
		if !shown || has != value.Plain {
			out[key] = value
		}
	}
	return out
}

// mayRunWith reports whether a member may still run with any of some values of an item.
// Of what it does not show, it does not run with what it has certainly refused.
func (j Judge) mayRunWith(seen observation.RunningConfig, key string, values []Value) bool {
	item, _ := j.Table.Item(key)
	has, shown := seen.Values[key]
	_, taken := seen.Taken[key]
	refusal, refused := seen.Refused[key]
	switch {
	case item.Blind:
		return taken || slices.ContainsFunc(values, func(v Value) bool { return !refused || refusal.Uncertain || refusal.Value != v.Plain })
	case !shown:
		return taken
	}
	return slices.ContainsFunc(values, func(v Value) bool { return v.Plain == has })
}

// Orders returns what the members have to be given for the updates of a plan.
func (j Judge) Orders(updates []component.ConfigUpdate) []Order {
	var out []Order
	for _, update := range updates {
		seen := j.Running[update.Instance.Name]
		out = append(out, Order{Instance: update.Instance, Items: j.missingItems(seen, j.Table.differingItems(update.Others, update.Wanted))})
	}
	return out
}
