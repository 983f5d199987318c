package revision

import (
	"encoding/json"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// Change is the first difference between two templates.
type Change struct {
	// Text says what differs: path, old and new value. Empty when nothing does.
	Text string
	// Restart says that the pod must be recreated for it.
	Restart bool
}

// Difference returns the first difference between two pod templates, those that
// need a restart before those that do not. Labels and annotations are changed
// in place, but for those that ask for a restart; everything else in a pod is
// immutable, or as good as, in Kubernetes.
func Difference(old, wanted *corev1.PodTemplateSpec) Change {
	if text := diffValues("spec", jsonTree(old.Spec), jsonTree(wanted.Spec)); text != "" {
		return Change{Text: text, Restart: true}
	}
	if before, after := old.Annotations[v1alpha1.AnnotationRestartedAt], wanted.Annotations[v1alpha1.AnnotationRestartedAt]; after != "" && before != after {
		return Change{Text: "restartedAt: " + after, Restart: true}
	}
	if before, after := old.Annotations[v1alpha1.AnnotationTrust], wanted.Annotations[v1alpha1.AnnotationTrust]; before != "" && after != "" && before != after {
		return Change{Text: "other certificate authorities", Restart: true}
	}
	return Change{Text: diffValues("metadata", jsonTree(old.ObjectMeta), jsonTree(wanted.ObjectMeta))}
}

// FirstDifference describes the first difference between two values of one type,
// as JSON has them; empty if there is none.
func FirstDifference(old, wanted any) string {
	return strings.TrimPrefix(diffValues("", jsonTree(old), jsonTree(wanted)), ".")
}

// jsonTree turns a typed value into what JSON would make of it. The types are
// Kubernetes' own, which always encode.
func jsonTree(v any) any {
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprintf("unencodable: %v", err)
	}
	var out any
	if err := json.Unmarshal(raw, &out); err != nil {
		return fmt.Sprintf("undecodable: %v", err)
	}
	return out
}

// diffValues walks two trees in order and describes the first difference.
func diffValues(path string, old, wanted any) string {
	switch w := wanted.(type) {
	case map[string]any:
		o, ok := old.(map[string]any)
		if !ok && old != nil {
			break
		}
		for _, key := range slices.Sorted(mapKeys(w, o)) {
			if text := diffValues(path+"."+key, o[key], w[key]); text != "" {
				return text
			}
			if text := diffSelector(path+"."+key, o[key], w[key]); text != "" {
				return text
			}
		}
		return ""
	case []any:
		o, ok := old.([]any)
		if !ok && old != nil {
			break
		}
		return diffList(path, o, w)
	case nil:
		switch o := old.(type) {
		case map[string]any:
			return diffValues(path, o, map[string]any{})
		case []any:
			return diffValues(path, o, []any{})
		}
	}
	if reflect.DeepEqual(old, wanted) {
		return ""
	}
	return describeChange(path, old, wanted)
}

// diffSelector tells a selector that is empty from one that is left out: it selects
// everything, where the other selects nothing. Of any other map both mean the same.
func diffSelector(path string, old, wanted any) string {
	if !strings.HasSuffix(path, "Selector") || (old == nil) == (wanted == nil) {
		return ""
	}
	return describeChange(path, old, wanted)
}

// describeChange describes a difference. Two values that read the same, such as nothing and
// the text none, are written as JSON has them.
func describeChange(path string, old, wanted any) string {
	before, after := formatValue(old), formatValue(wanted)
	if before == after {
		before, after = encodeValue(old), encodeValue(wanted)
	}
	return fmt.Sprintf("%s: %s → %s", path, before, after)
}

func diffList(path string, old, wanted []any) string {
	for i := range max(len(old), len(wanted)) {
		at := path + "[" + entryLabel(old, wanted, i) + "]"
		switch {
		case i >= len(old):
			return at + " added"
		case i >= len(wanted):
			return at + " removed"
		}
		if text := diffValues(at, old[i], wanted[i]); text != "" {
			return text
		}
	}
	return ""
}

// entryLabel names a list entry by its name if it has one, else by its index.
func entryLabel(old, wanted []any, i int) string {
	for _, list := range [][]any{wanted, old} {
		if i < len(list) {
			if m, ok := list[i].(map[string]any); ok {
				if name, ok := m["name"].(string); ok {
					return name
				}
			}
		}
	}
	return strconv.Itoa(i)
}

func formatValue(v any) string {
	if v == nil {
		return "none"
	}
	if s, ok := v.(string); ok {
		return s
	}
	return encodeValue(v)
}

func encodeValue(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(raw)
}

// mapKeys yields the keys of two maps, those in both only once.
func mapKeys[V any](a, b map[string]V) iter.Seq[string] {
	return func(yield func(string) bool) {
		for k := range a {
			if !yield(k) {
				return
			}
		}
		for k := range b {
			if _, both := a[k]; !both && !yield(k) {
				return
			}
		}
	}
}
