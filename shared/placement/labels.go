package placement

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/storestate"
	"github.com/tidb-groups/tidb-groups/shared/topology"
)

// LabelsDeadline bounds all the calls of one SetLabels.
const LabelsDeadline = 5 * time.Second

// The labels by which placement rules find the stores of a group, as TiDB Operator
// names them. PD keeps all regions away from a store with a key that begins with $,
// but those of a rule that names the key.
const (
	groupLabel     = "k/tikvgroup"
	exclusiveLabel = "$k/exclusive"
)

// LabelChange is labels that a store lacks, or has and should not.
type LabelChange struct {
	// Instance that the store belongs to.
	Instance string
	// StoreID in decimal.
	StoreID string
	// Labels to set, and those to remove, which have no value; others of the store
	// stay.
	Labels map[string]string
}

// OperatorLabels returns the labels that keep regions away from the stores of an
// exclusive group and let placement rules find them (KV-26). One without a value is
// to be removed. The group's name stays with a store that was exclusive once: a rule
// may still name it.
func OperatorLabels(g *v1alpha1.TiKVGroup) map[string]string {
	if g.Spec.Placement == nil || !g.Spec.Placement.Exclusive {
		return map[string]string{exclusiveLabel: ""}
	}
	return map[string]string{exclusiveLabel: "true", groupLabel: g.Namespace + "." + g.Name}
}

// labelText is what PD accepts as key and value of a label.
var labelText = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9_./]*[A-Za-z0-9])?$`)

// CheckLabels returns what is wrong with the store labels of a spec. PD compares keys
// without case.
func CheckLabels(user map[string]v1alpha1.StoreLabelValue) []string {
	var problems []string
	first := map[string]string{} // the key as it was said first, by the key in small letters
	for _, key := range slices.Sorted(maps.Keys(user)) {
		field, small := fmt.Sprintf("spec.storeLabels[%s]", key), strings.ToLower(key)
		same := first[small]
		first[small] = key
		switch {
		case slices.Contains([]string{"host", "zone", "region"}, small):
			problems = append(problems, field+": this label comes from the node: remove it")
		case small == "engine":
			problems = append(problems, field+": this label tells PD what kind of store it is: remove it")
		case small == "exclusive":
			problems = append(problems, fmt.Sprintf("%s: PD keeps all data away from a store with this label, whatever its value %q: remove it, or set spec.placement.exclusive of a TiKVGroup", field, user[key]))
		case strings.HasPrefix(small, "k/"):
			problems = append(problems, field+": this label belongs to the operator: remove it")
		case !labelText.MatchString(key):
			problems = append(problems, fmt.Sprintf("%s: PD refuses the key %q: begin and end it with a letter or digit and use only letters, digits and -_./", field, key))
		case !labelText.MatchString(string(user[key])):
			problems = append(problems, fmt.Sprintf("%s: PD refuses the value %q: begin and end it with a letter or digit and use only letters, digits and -_./", field, user[key]))
		case same != "":
			problems = append(problems, fmt.Sprintf("%s: %q is the same label as %q to PD: remove one of the two", field, key, same))
		}
	}
	return problems
}

// LabelChanges returns the labels that the group's stores lack, those of their
// nodes that PD places replicas by and the user's own, and the operator's, of which
// one without a value is to be removed.
func LabelChanges(s observation.Snapshot, matches []storestate.Match, user map[string]v1alpha1.StoreLabelValue, operator map[string]string) []LabelChange {
	users := LabelTexts(user)
	var out []LabelChange
	for _, m := range matches {
		if m.Store == nil || !m.Own.IsAllowed() || m.Instance.DeletionTimestamp != nil {
			continue
		}
		want := topology.StoreLabels(s.Nodes[m.Instance.Status.NodeName], s.PD.LocationLabels, users)
		maps.Copy(want, operator)
		maps.DeleteFunc(want, func(key, value string) bool { return value == "" && LabelOf(*m.Store, key) == "" })
		if missing := topology.MissingLabels(want, m.Store.Labels); len(missing) > 0 {
			out = append(out, LabelChange{Instance: m.Instance.Name, StoreID: m.Store.ID, Labels: missing})
		}
	}
	return out
}

// LabelTexts returns the store labels of a spec as texts.
func LabelTexts(user map[string]v1alpha1.StoreLabelValue) map[string]string {
	out := make(map[string]string, len(user))
	for key, value := range user {
		out[key] = string(value)
	}
	return out
}

// LabelsPending waits for PD to list the labels that are being set; Done if
// none are.
func LabelsPending(changes []LabelChange) step.Outcome {
	if len(changes) == 0 {
		return step.Done()
	}
	first := changes[0]
	return step.Wait("PD", time.Minute, v1alpha1.ReasonProgressing, fmt.Sprintf("setting labels %s of store %s (Instance %s) in PD", LabelText(first.Labels), first.StoreID, first.Instance))
}

// LabelText writes labels as kubectl label takes them: one to be removed ends with -.
func LabelText(labels map[string]string) string {
	parts := make([]string, 0, len(labels))
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if labels[key] == "" {
			parts = append(parts, key+"-")
			continue
		}
		parts = append(parts, key+"="+labels[key])
	}
	return strings.Join(parts, ",")
}
