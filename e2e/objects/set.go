package objects

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/testkit/invariants"
)

// Key names an object of a namespace.
type Key struct {
	// Kind of the object.
	Kind string
	// Name of the object.
	Name string
}

// String renders the key as in "PDGroup basic-pd".
func (k Key) String() string { return k.Kind + " " + k.Name }

// MarshalText implements encoding.TextMarshaler.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler: it reads what String renders.
func (k *Key) UnmarshalText(text []byte) error {
	kind, name, ok := strings.Cut(string(text), " ")
	if !ok || kind == "" || name == "" || strings.Contains(name, " ") {
		return fmt.Errorf("%q is no object: write its kind and its name, as in %q", text, "PDGroup basic-pd")
	}
	k.Kind, k.Name = kind, name
	return nil
}

// Set is all objects of a namespace at one moment. It belongs to the watcher
// that hands it out, and must not be kept.
type Set struct {
	all map[Key]*unstructured.Unstructured
}

// NewSet returns a set of the given objects, which it does not copy.
func NewSet(all map[Key]*unstructured.Unstructured) Set { return Set{all} }

// Get returns an object, nil if there is none.
func (o Set) Get(kind, name string) *unstructured.Unstructured { return o.all[Key{kind, name}] }

// Names returns the names of a kind that begin with prefix, in order.
func (o Set) Names(kind, prefix string) []string {
	var out []string
	for key := range o.all {
		if key.Kind == kind && strings.HasPrefix(key.Name, prefix) {
			out = append(out, key.Name)
		}
	}
	slices.Sort(out)
	return out
}

// Keys returns the keys of all objects, in order.
func (o Set) Keys() []Key {
	return slices.SortedFunc(maps.Keys(o.all), func(a, b Key) int { return cmp.Compare(a.String(), b.String()) })
}

// Converged is content when an object is Ready and UpToDate at its present
// generation.
func (o Set) Converged(kind, name string) error {
	object := o.Get(kind, name)
	if object == nil {
		return fmt.Errorf("%s %s does not exist", kind, name)
	}
	for _, t := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionUpToDate} {
		c := Condition(object, t)
		switch {
		case c == nil, c.ObservedGeneration != object.GetGeneration():
			return fmt.Errorf("%s %s has no current condition %s", kind, name, t)
		case c.Status != metav1.ConditionTrue:
			return fmt.Errorf("%s %s: %s is %s (%s: %s)", kind, name, t, c.Status, c.Reason, c.Message)
		}
	}
	return nil
}

// AllConverged is content when every object of the suite's own kinds is
// converged.
func (o Set) AllConverged() error {
	for _, key := range o.Keys() {
		if !slices.Contains(v1alpha1.Kinds(), key.Kind) {
			continue
		}
		if err := o.Converged(key.Kind, key.Name); err != nil {
			return err
		}
	}
	return nil
}

// Says is content when a condition of an object's present generation has a
// reason, and its message names every one of the words.
func (o Set) Says(kind, name, condition, reason string, words ...string) error {
	object := o.Get(kind, name)
	if object == nil {
		return fmt.Errorf("%s %s does not exist", kind, name)
	}
	c := Condition(object, condition)
	switch {
	case !IsCurrent(object, c):
		return fmt.Errorf("%s %s has no current condition %s, but %s", kind, name, condition, Describe(object))
	case c.Reason != reason:
		return fmt.Errorf("%s %s: %s has reason %s (%s)", kind, name, condition, c.Reason, c.Message)
	}
	for _, word := range words {
		if !strings.Contains(c.Message, word) {
			return fmt.Errorf("%s %s: %s (%s) does not name %q: %s", kind, name, condition, reason, word, c.Message)
		}
	}
	return nil
}

// IsCurrent reports whether a condition is there and says of the object's present generation,
// or of none: what the database says of a member rests on no spec.
func IsCurrent(object *unstructured.Unstructured, c *metav1.Condition) bool {
	return c != nil && (c.ObservedGeneration == 0 || c.ObservedGeneration == object.GetGeneration())
}

// Describe renders an object's conditions on one line.
func Describe(object *unstructured.Unstructured) string {
	var parts []string
	for _, c := range Conditions(object) {
		parts = append(parts, fmt.Sprintf("%s=%s@%d(%s: %s)", c.Type, c.Status, c.ObservedGeneration, c.Reason, c.Message))
	}
	return fmt.Sprintf("%s %s @%d: %s", object.GetKind(), object.GetName(), object.GetGeneration(), strings.Join(parts, " "))
}

// Conditions returns an object's conditions; what is none is left out, for the
// invariants to tell.
func Conditions(object *unstructured.Unstructured) []metav1.Condition {
	var out []metav1.Condition
	for fields := range conditionEntries(object) {
		if c, err := invariants.Read(fields); err == nil {
			out = append(out, c)
		}
	}
	return out
}

// Condition returns a condition of an object, nil if there is none.
func Condition(object *unstructured.Unstructured, conditionType string) *metav1.Condition {
	for fields := range conditionEntries(object) {
		if fields["type"] != conditionType {
			continue
		}
		if c, err := invariants.Read(fields); err == nil {
			return &c
		}
	}
	return nil
}

// conditionEntries are the objects in status.conditions, not copied: who waits looks at all objects at
// each version of one.
func conditionEntries(object *unstructured.Unstructured) iter.Seq[map[string]any] {
	value, _, err := unstructured.NestedFieldNoCopy(object.Object, "status", "conditions")
	list, ok := value.([]any)
	return func(yield func(map[string]any) bool) {
		if err != nil || !ok {
			return
		}
		for _, entry := range list {
			if fields, ok := entry.(map[string]any); ok && !yield(fields) {
				return
			}
		}
	}
}
