package scenario

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/e2e/objects"
)

// Holds is what may be true of all objects at one moment. All that is named has
// to be true together.
type Holds struct {
	// Converged objects exist and are Ready and UpToDate, and so is everything
	// else of the suite in the namespace.
	Converged []objects.Key `json:"converged,omitempty"`
	// Good objects exist and are Ready and UpToDate, whatever the others are.
	Good []objects.Key `json:"good,omitempty"`
	// Exist are objects that exist.
	Exist []objects.Key `json:"exist,omitempty"`
	// Gone are objects that do not exist.
	Gone []objects.Key `json:"gone,omitempty"`
	// OnlyClaims says that nothing of a database is left but claims.
	OnlyClaims bool `json:"onlyClaims,omitempty"`
	// Replaced objects exist and are not those that the scenario last deleted
	// by these names; a pod is Ready besides, of which its group may not have heard yet
	// that it was not.
	Replaced []objects.Key `json:"replaced,omitempty"`
	// Count is how many objects of a kind there are; behind the kind may stand
	// what their names begin with: "Pod basic-pd-".
	Count map[string]int `json:"count,omitempty"`
	// AtLeast is as Count, for what may be exceeded.
	AtLeast map[string]int `json:"atLeast,omitempty"`
	// Says is what conditions say.
	Says []Says `json:"says,omitempty"`
	// Fields have values.
	Fields []Field `json:"fields,omitempty"`
	// Either of these holds as well.
	Either []Holds `json:"either,omitempty"`
}

// Says is what a condition of an object's present generation says.
type Says struct {
	// Object that has the condition.
	Object objects.Key `json:"object"`
	// Condition type.
	Condition string `json:"condition"`
	// Status of the condition, True, False or Unknown; any if empty.
	Status string `json:"status,omitempty"`
	// Reason of the condition; any if empty.
	Reason string `json:"reason,omitempty"`
	// Words that its message has.
	Words []string `json:"words,omitempty"`
	// Absent says that there is no such condition.
	Absent bool `json:"absent,omitempty"`
}

// Field is the value of a field of an object.
type Field struct {
	// Object that has the field.
	Object objects.Key `json:"object"`
	// Path of the field, with dots, and the index of an entry of a list:
	// "status.replicas", "status.containerStatuses.0.restartCount". The last part may
	// have dots of its own, as the key of an annotation has.
	Path string `json:"path"`
	// Is its value as text; empty if there is no such field.
	Is string `json:"is"`
}

// Await is what must come.
type Await struct {
	Holds `json:",inline"`
	// Replicated waits, after all else, until every region has as many voters as
	// PD wants and as many learners as tables want, or as there are stores.
	Replicated bool `json:"replicated,omitempty"`
	// Empty waits, after that, until no region lies on the stores of these pods, and
	// Filled until some lie on each.
	Empty  []string `json:"empty,omitempty"`
	Filled []string `json:"filled,omitempty"`
	// Leaderless waits likewise until the stores of these pods lead no region, and
	// Leading until each leads some.
	Leaderless []string `json:"leaderless,omitempty"`
	Leading    []string `json:"leading,omitempty"`
	// Settings waits, after all else, until the members in pods run with values of
	// their configuration, by pod and key.
	Settings map[string]map[string]string `json:"settings,omitempty"`
	// Folders waits, after all else, until the files on the volumes of claims lie in folders
	// of these names and in no others, each pattern for one: {backups: ["monday", "nightly-*"]}.
	Folders map[string][]string `json:"folders,omitempty"`
	// Shows waits likewise until the members in pods show the certificates of Secrets, by
	// pod and Secret.
	Shows map[string]string `json:"shows,omitempty"`
	// Within is how long it may take; the scenario's timeout if zero.
	Within metav1.Duration `json:"within,omitempty"`
}

// placed is content when the regions are where they are to be.
func (a Await) placed(ctx context.Context, world World) error {
	if a.Replicated {
		if err := world.Replicated(ctx); err != nil {
			return err
		}
	}
	for _, pod := range a.pods() {
		all, led, err := world.Regions(ctx, pod)
		switch {
		case err != nil:
			return err
		case all > 0 && slices.Contains(a.Empty, pod), all == 0 && slices.Contains(a.Filled, pod):
			return fmt.Errorf("%d regions lie on the store of pod %s", all, pod)
		case led > 0 && slices.Contains(a.Leaderless, pod), led == 0 && slices.Contains(a.Leading, pod):
			return fmt.Errorf("%d regions are led by the store of pod %s", led, pod)
		}
	}
	return nil
}

// stored is content when the files on volumes lie in the folders that are wanted.
func (a Await) stored(ctx context.Context, world World) error {
	for claim, want := range a.Folders {
		have, err := world.Folders(ctx, claim)
		if err != nil {
			return err
		}
		left := slices.Clone(have)
		for _, pattern := range want {
			at := slices.IndexFunc(left, func(folder string) bool {
				is, err := path.Match(pattern, folder)
				return err == nil && is
			})
			if at < 0 {
				return fmt.Errorf("claim %s has no folder %s, but %v", claim, pattern, have)
			}
			left = slices.Delete(left, at, at+1)
		}
		if len(left) > 0 {
			return fmt.Errorf("claim %s has files in %v, which should not be there", claim, left)
		}
	}
	return nil
}

// pods are those whose stores are looked at.
func (a Await) pods() []string { return slices.Concat(a.Empty, a.Filled, a.Leaderless, a.Leading) }

// Expect is what must be so at this moment.
type Expect struct {
	Holds `json:",inline"`
	// Restarts is how often each pod was replaced since the scenario began.
	// Pods that are not named must never have been: {} is none at all.
	Restarts *map[string]int `json:"restarts,omitempty"`
	// Replacements is how often pods were replaced whose names begin with something,
	// all together, where it is chance which: {a-: 1}.
	Replacements map[string]int `json:"replacements,omitempty"`
	// Bootstraps is how many PD clusters were bootstrapped, in all of them together.
	Bootstraps *int `json:"bootstraps,omitempty"`
	// Upgrades is how many upgrades TiDB was told of before the first server had
	// another version, and that they are over after the last, in all databases
	// together; and that no other server was ever restarted with another version.
	Upgrades *int `json:"upgrades,omitempty"`
	// Flushed is how often the process of each TiKV pod has ended so far without a
	// leader and with its log backups written out; of no other pod has it.
	Flushed *map[string]int `json:"flushed,omitempty"`
	// Led is how often the process of each TiKV pod has ended so far while its store led
	// regions, and that of each PD pod while it led beside others, and that PD keeps
	// leaders off no store now: {} is no pod ever.
	Led *map[string]int `json:"led,omitempty"`
	// Held are the services that have PD hold old data back now: [] is none.
	Held *[]string `json:"held,omitempty"`
	// ClaimsKept says that every claim that ever was is still there, the same
	// object as ever, except those that the scenario deleted.
	ClaimsKept bool `json:"claimsKept,omitempty"`
}

// check is content when everything holds. deleted are the UIDs of what the
// scenario has deleted.
func (h Holds) check(o objects.Set, deleted map[objects.Key]types.UID) error {
	for _, key := range slices.Concat(h.Good, h.Converged) {
		if err := o.Converged(key.Kind, key.Name); err != nil {
			return err
		}
	}
	if len(h.Converged) > 0 {
		if err := o.AllConverged(); err != nil {
			return err
		}
	}
	if err := h.checkExistence(o, deleted); err != nil {
		return err
	}
	for _, s := range h.Says {
		if err := s.check(o); err != nil {
			return err
		}
	}
	for _, f := range h.Fields {
		if err := f.check(o); err != nil {
			return err
		}
	}
	var reasons []error
	for _, alternative := range h.Either {
		err := alternative.check(o, deleted)
		if err == nil {
			return nil
		}
		reasons = append(reasons, err)
	}
	return errors.Join(reasons...)
}

func (h Holds) checkExistence(o objects.Set, deleted map[objects.Key]types.UID) error {
	for _, key := range h.Exist {
		if o.Get(key.Kind, key.Name) == nil {
			return fmt.Errorf("%s does not exist", key)
		}
	}
	for _, key := range h.Gone {
		if object := o.Get(key.Kind, key.Name); object != nil {
			return fmt.Errorf("%s is still there: %s", key, objects.Describe(object))
		}
	}
	for _, key := range h.Replaced {
		if object := o.Get(key.Kind, key.Name); object == nil || object.GetUID() == deleted[key] {
			return fmt.Errorf("%s is not replaced", key)
		} else if key.Kind == kindPod && !meta.IsStatusConditionTrue(objects.Conditions(object), "Ready") {
			return fmt.Errorf("%s is replaced, and not Ready yet", key)
		}
	}
	if h.OnlyClaims {
		for _, key := range o.Keys() {
			if object := o.Get(key.Kind, key.Name); isSuiteObject(object) && key.Kind != kindClaim {
				return fmt.Errorf("%s is still there: %s", key, objects.Describe(object))
			}
		}
	}
	for what, want := range h.Count {
		if have := countObjects(o, what); have != want {
			return fmt.Errorf("there are %d × %s, not %d", have, what, want)
		}
	}
	for what, want := range h.AtLeast {
		if have := countObjects(o, what); have < want {
			return fmt.Errorf("there are %d × %s, not %d", have, what, want)
		}
	}
	return nil
}

func (s Says) check(o objects.Set) error {
	object := o.Get(s.Object.Kind, s.Object.Name)
	if object == nil {
		return fmt.Errorf("%s does not exist", s.Object)
	}
	c := objects.Condition(object, s.Condition)
	switch {
	case s.Absent && c == nil:
		return nil
	case s.Absent:
		return fmt.Errorf("%s has a condition %s: %s", s.Object, s.Condition, objects.Describe(object))
	case !objects.IsCurrent(object, c):
		return fmt.Errorf("%s has no current condition %s, but %s", s.Object, s.Condition, objects.Describe(object))
	case s.Status != "" && string(c.Status) != s.Status, s.Reason != "" && c.Reason != s.Reason:
		return fmt.Errorf("%s: %s is %s (%s: %s)", s.Object, s.Condition, c.Status, c.Reason, c.Message)
	}
	for _, word := range s.Words {
		if !strings.Contains(c.Message, word) {
			return fmt.Errorf("%s: %s (%s) does not name %q: %s", s.Object, s.Condition, c.Reason, word, c.Message)
		}
	}
	return nil
}

// message is what the condition says now, empty if there is none.
func (s Says) message(o objects.Set) string {
	if object := o.Get(s.Object.Kind, s.Object.Name); object != nil {
		if c := objects.Condition(object, s.Condition); c != nil {
			return c.Message
		}
	}
	return ""
}

func (f Field) check(o objects.Set) error {
	object := o.Get(f.Object.Kind, f.Object.Name)
	if object == nil {
		return fmt.Errorf("%s does not exist", f.Object)
	}
	have := ""
	if value := findValue(object.Object, strings.Split(f.Path, ".")); value != nil {
		have = fmt.Sprint(value)
	}
	if have != f.Is {
		return fmt.Errorf("%s: %s is %q, not %q", f.Object, f.Path, have, f.Is)
	}
	return nil
}

// findValue follows a path through maps by key and through lists by index; nil if it
// leads nowhere.
func findValue(value any, path []string) any {
	for n, step := range path {
		switch v := value.(type) {
		case map[string]any:
			if whole, ok := v[strings.Join(path[n:], ".")]; ok {
				return whole
			}
			value = v[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(v) {
				return nil
			}
			value = v[i]
		default:
			return nil
		}
	}
	return value
}

// countObjects counts the objects of a kind whose names begin with what stands behind it.
func countObjects(o objects.Set, what string) int {
	kind, prefix, _ := strings.Cut(what, " ")
	return len(o.Names(kind, prefix))
}

// isSuiteObject says whether an object is of the suite's kinds, or made by it.
func isSuiteObject(object *unstructured.Unstructured) bool {
	return object.GroupVersionKind().Group == v1alpha1.GroupName || object.GetLabels()[v1alpha1.LabelManagedBy] == v1alpha1.ManagedBy
}
