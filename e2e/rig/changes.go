package rig

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
)

// created and deleted are what Change.Fields says of an object's first and last version.
const (
	created = "created"
	deleted = "deleted"
)

// Change is what one version of an object changed, with whatever value.
type Change struct {
	// Kind of the object.
	Kind string
	// Fields that differ from the version before, as paths with commas between.
	// Conditions are named by their type and what differs in them, managed fields and
	// the numbers of versions are left out.
	Fields string
}

// compare counts what is different in a version of an object. The watcher's lock is held.
func (w *Watcher) compare(event watch.EventType, before, after *unstructured.Unstructured) {
	change := Change{Kind: after.GetKind()}
	switch {
	case event == watch.Deleted:
		change.Fields = deleted
	case before == nil:
		change.Fields = created
	default:
		fields := map[string]bool{}
		differ("", before.Object, after.Object, fields)
		change.Fields = strings.Join(slices.Sorted(maps.Keys(fields)), ", ")
	}
	w.tally[change]++
}

// CountChanges counts from now on what versions change. It compares every one with the one
// before, so nobody pays for it who does not ask.
func (w *Watcher) CountChanges() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tally = map[Change]int{}
}

// Changes returns what the versions of all objects changed since CountChanges, and how often.
func (w *Watcher) Changes() map[Change]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.tally)
}

// differ notes the paths of what differs between two values.
func differ(path string, before, after any, into map[string]bool) {
	switch path {
	case ".metadata.managedFields", ".metadata.resourceVersion", ".metadata.generation":
		return
	}
	if reflect.DeepEqual(before, after) {
		return
	}
	b, wasMap := before.(map[string]any)
	a, isMap := after.(map[string]any)
	if wasMap || isMap {
		for _, key := range slices.Sorted(maps.Keys(union(b, a))) {
			differ(path+"."+key, b[key], a[key], into)
		}
		return
	}
	if path == ".status.conditions" {
		b, a := byType(before), byType(after)
		for _, name := range slices.Sorted(maps.Keys(union(b, a))) {
			condition(name, b[name], a[name], into)
		}
		return
	}
	if b, a := list(before), list(after); len(b) == len(a) && len(a) > 0 {
		for i := range a {
			differ(path+"[]", b[i], a[i], into)
		}
		return
	}
	into[strings.TrimPrefix(path, ".")] = true
}

func list(value any) []any {
	out, _ := value.([]any)
	return out
}

// condition notes the most telling part that differs in a condition.
func condition(name string, before, after any, into map[string]bool) {
	b, _ := before.(map[string]any)
	a, _ := after.(map[string]any)
	for _, part := range []string{"status", "reason", "message", "observedGeneration", "lastTransitionTime"} {
		if !reflect.DeepEqual(b[part], a[part]) {
			into[fmt.Sprintf("%s.%s", name, part)] = true
			return
		}
	}
}

func byType(conditions any) map[string]any {
	out := map[string]any{}
	for _, one := range list(conditions) {
		if m, ok := one.(map[string]any); ok {
			out[fmt.Sprint(m["type"])] = m
		}
	}
	return out
}

func union(a, b map[string]any) map[string]any {
	out := maps.Clone(a)
	if out == nil {
		out = map[string]any{}
	}
	maps.Copy(out, b)
	return out
}

// MostOften sorts changes, the most frequent first.
func MostOften(changes map[Change]int) []Change {
	return slices.SortedFunc(maps.Keys(changes), func(a, b Change) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(changes[b], changes[a]), cmp.Compare(a.Fields, b.Fields))
	})
}
