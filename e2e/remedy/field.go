package remedy

import (
	"regexp"
	"slices"
	"strings"
)

// Field is a field of a spec that a message names.
type Field struct {
	// Path as the message has it, with the name of an entry: spec.tikv[main].replicas.
	Path string
	// Steps of the path; the name of an entry is a step of its own, in brackets.
	Steps []string
}

var fields = regexp.MustCompile(`\bspec(?:\.[a-zA-Z][a-zA-Z0-9]*(?:\[[-a-z0-9]*\])?)+`)

// FindFields returns the fields of specs that a message names.
func FindFields(message string) []Field {
	var out []Field
	for _, span := range fields.FindAllStringIndex(message, -1) {
		if span[0] > 0 && strings.ContainsRune("./-", rune(message[span[0]-1])) {
			continue // a part of another name, as in pod.spec
		}
		path := message[span[0]:span[1]]
		out = append(out, Field{Path: path, Steps: SplitPath(path)})
	}
	return out
}

// SplitPath splits a path.
func SplitPath(path string) []string {
	var out []string
	for _, part := range strings.Split(path, ".") {
		name, entry, found := strings.Cut(part, "[")
		out = append(out, name)
		if found {
			out = append(out, "["+entry)
		}
	}
	return out
}

// TrySet puts a value into an object at a path, or takes it away if there is none. It
// says whether the path leads there.
func TrySet(object map[string]any, steps []string, value any) bool {
	if len(steps) == 1 {
		if value == nil {
			delete(object, steps[0])
		} else {
			object[steps[0]] = value
		}
		return true
	}
	if object[steps[0]] == nil {
		object[steps[0]] = map[string]any{}
	}
	switch below := object[steps[0]].(type) {
	case map[string]any:
		return TrySet(below, steps[1:], value)
	case []any:
		if len(steps) > 2 {
			entry := FindEntry(below, steps[1])
			return entry != nil && TrySet(entry, steps[2:], value)
		}
		kept := slices.DeleteFunc(below, func(one any) bool { return FindEntry([]any{one}, steps[1]) != nil })
		if value != nil {
			kept = append(kept, value)
		}
		object[steps[0]] = kept
		return true
	}
	return false
}

// FindEntry returns the entry of a list that a step of a path names, nil if there is none.
func FindEntry(list []any, step string) map[string]any {
	for _, one := range list {
		entry, ok := one.(map[string]any)
		if !ok {
			continue
		}
		if name, _ := entry["name"].(string); "["+name+"]" == step {
			return entry
		}
	}
	return nil
}
