package settings

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/group"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

const (
	// askAgain is how soon a member that could not be asked is asked again.
	askAgain = 5 * time.Second
	// tryAgain is how soon a member that has refused an item is given it again:
	// nothing tells when it would take it.
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
	Running map[string]group.Running
	Now     time.Time
}

var _ group.Settings = Judge{}

// Restart implements group.Settings.
func (j Judge) Restart(old, wanted map[string]string) string {
	if j.Policy != v1alpha1.ConfigOnline {
		return "spec.configUpdate is not " + string(v1alpha1.ConfigOnline)
	}
	return j.Table.Restart(old, wanted)
}

// Given implements group.Settings.
func (j Judge) Given(i *v1alpha1.Instance, others []map[string]string, wanted map[string]string) group.Given {
	seen, known := j.Running[i.Name]
	switch {
	case known && seen.Err != nil:
		left := max(askAgain-j.Now.Sub(seen.Tried.Time), time.Millisecond)
		return group.Given{Outcome: step.After(left, v1alpha1.ReasonRequestFailed, fmt.Sprintf("Instance %s does not tell its configuration: %v: kubectl -n %s logs %s", i.Name, seen.Err, i.Namespace, i.Name))}
	case !known:
		return group.Given{Outcome: step.Wait("Instance", time.Second, v1alpha1.ReasonConfigPending, "Instance "+i.Name+" is being asked what configuration it runs with")}
	}
	given := group.Given{Outcome: step.Done()}
	dropped := j.Table.dropped(others, wanted)
	for _, key := range slices.Sorted(maps.Keys(dropped)) {
		if j.kept(seen, key, dropped[key]) {
			given.Stuck = key + " goes back to its default"
			break
		}
	}
	lacks := j.lacks(seen, j.Table.differing(others, wanted))
	if len(lacks) == 0 {
		return given
	}
	keys := slices.Sorted(maps.Keys(lacks))
	given.Give = true
	given.Outcome = step.Wait("status port", time.Minute, v1alpha1.ReasonConfigPending, fmt.Sprintf("Instance %s is given %s", i.Name, strings.Join(keys, ", ")))
	var refused []string
	answer := ""
	for _, key := range keys {
		if r, was := seen.Refused[key]; was && r.Value == lacks[key].Plain {
			refused = append(refused, fmt.Sprintf("%s = %s", key, lacks[key].Text))
			answer = r.Answer
		}
	}
	if len(refused) == 0 {
		return given
	}
	left := tryAgain - j.Now.Sub(seen.Tried.Time)
	given.Give = left <= 0
	given.Outcome = step.Stall(v1alpha1.ReasonConfigRefused, fmt.Sprintf("Instance %s does not take %s while it runs (%s): set it back, or set spec.configUpdate to %s: kubectl -n %s edit %s %s",
		i.Name, strings.Join(refused, ", "), answer, v1alpha1.RestartForConfig, i.Namespace, strings.ToLower(j.Group.GroupKind()), j.Group.GetName()))
	given.Outcome.After = max(left, time.Second)
	return given
}

// lacks returns those of some items that a member does not run with.
func (j Judge) lacks(seen group.Running, items map[string]Value) map[string]Value {
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

// kept reports whether a member may still run with any of some values of an item.
func (j Judge) kept(seen group.Running, key string, values []Value) bool {
	item, _ := j.Table.Item(key)
	has, shown := seen.Values[key]
	_, taken := seen.Taken[key]
	_, refused := seen.Refused[key]
	switch {
	case item.Blind:
		return taken || !refused
	case !shown:
		return taken
	}
	return slices.ContainsFunc(values, func(v Value) bool { return v.Plain == has })
}

// Orders returns what the members have to be given for the gifts of a plan.
func (j Judge) Orders(gifts []group.Gift) []Order {
	var out []Order
	for _, gift := range gifts {
		seen := j.Running[gift.Instance.Name]
		out = append(out, Order{Instance: gift.Instance, Items: j.lacks(seen, j.Table.differing(gift.Others, gift.Wanted))})
	}
	return out
}
