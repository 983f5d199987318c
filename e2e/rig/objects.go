package rig

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// Objects are all objects of a namespace at one moment. They are the watcher's
// own and must not be kept.
type Objects struct {
	all map[Key]*unstructured.Unstructured
}

// Get returns an object, nil if there is none.
func (o Objects) Get(kind, name string) *unstructured.Unstructured { return o.all[Key{kind, name}] }

// Names returns the names of a kind that begin with prefix, in order.
func (o Objects) Names(kind, prefix string) []string {
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
func (o Objects) Keys() []Key {
	return slices.SortedFunc(maps.Keys(o.all), func(a, b Key) int { return compare(a.String(), b.String()) })
}

// Converged is content when an object is Ready and UpToDate at its present
// generation.
func (o Objects) Converged(kind, name string) error {
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
func (o Objects) AllConverged() error {
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
func (o Objects) Says(kind, name, condition, reason string, words ...string) error {
	object := o.Get(kind, name)
	if object == nil {
		return fmt.Errorf("%s %s does not exist", kind, name)
	}
	c := Condition(object, condition)
	switch {
	case c == nil, c.ObservedGeneration != object.GetGeneration():
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
	entries, _, err := unstructured.NestedSlice(object.Object, "status", "conditions")
	if err != nil {
		return nil
	}
	var out []metav1.Condition
	for _, entry := range entries {
		fields, ok := entry.(map[string]any)
		var c metav1.Condition
		if ok && runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &c) == nil {
			out = append(out, c)
		}
	}
	return out
}

// Condition returns a condition of an object, nil if there is none.
func Condition(object *unstructured.Unstructured, conditionType string) *metav1.Condition {
	for _, c := range Conditions(object) {
		if c.Type == conditionType {
			return &c
		}
	}
	return nil
}

func compare(a, b string) int { return cmp.Compare(a, b) }
