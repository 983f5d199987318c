package canonical

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
)

// Contains reports whether have contains want: every field of want with an equal
// value. Lists of objects that have a name or key are compared by it; finalizers
// are a set; other lists must be equal.
func Contains(have, want any) bool {
	switch w := want.(type) {
	case map[string]any:
		h, ok := have.(map[string]any)
		if !ok {
			return len(w) == 0 && have == nil
		}
		for k, v := range w {
			if k == "finalizers" && hasAll(h[k], v) {
				continue
			}
			if there := h[k]; !Contains(there, v) || there == nil && v != nil && isSwitch(k) {
				return false
			}
		}
		return true
	case []any:
		return containsList(have, w)
	}
	return equality.Semantic.DeepEqual(have, want)
}

// hasAll reports whether a list has every element of another. Finalizers are a
// set, to which each operator adds its own.
func hasAll(have, want any) bool {
	h, ok := have.([]any)
	w, too := want.([]any)
	return ok && too && !slices.ContainsFunc(w, func(e any) bool { return !slices.Contains(h, e) })
}

func containsList(have any, want []any) bool {
	h, ok := have.([]any)
	if !ok {
		return len(want) == 0 && have == nil
	}
	if key := listKey(want); key != "" {
		byKey := make(map[any]any, len(h))
		for _, e := range h {
			if m, ok := e.(map[string]any); ok {
				byKey[m[key]] = e
			}
		}
		for _, e := range want {
			if m, ok := e.(map[string]any); !ok || !Contains(byKey[m[key]], e) {
				return false
			}
		}
		return true
	}
	if len(h) != len(want) {
		return false
	}
	for i := range want {
		if !Contains(h[i], want[i]) {
			return false
		}
	}
	return true
}

// listKey returns the field that identifies the elements of a list of objects,
// empty if there is none.
func listKey(list []any) string {
	for _, key := range []string{"uid", "name", "type", "topologyKey"} {
		seen := map[any]bool{}
		for _, e := range list {
			m, ok := e.(map[string]any)
			if !ok || m[key] == nil || seen[m[key]] {
				break
			}
			seen[m[key]] = true
		}
		if len(list) > 0 && len(seen) == len(list) {
			return key
		}
	}
	return ""
}
