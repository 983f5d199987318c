package campaign

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
)

// mutation is a value for a field of a spec.
type mutation struct {
	kind  string // of the object
	path  []string
	class string // valid, odd, invalid or unset, as far as the schema says
	nth   int    // of the class, from 1
	value any    // nil takes the field away
	root  *schema
}

// String names the mutation as a fault.
func (m mutation) String() string {
	return fmt.Sprintf("mutate:%s/%s/%s-%d", m.kind, strings.ReplaceAll(strings.Join(m.path, "."), "."+element, element), m.class, m.nth)
}

// mutations returns every mutation of a kind's spec, in order.
func mutations(kind string, spec *schema) []mutation {
	var out []mutation
	spec.each(nil, func(path []string, field *schema) {
		nth := map[string]int{}
		for _, v := range field.values() {
			nth[v.class]++
			out = append(out, mutation{kind: kind, path: path, class: v.class, nth: nth[v.class], value: v.value, root: spec})
		}
	})
	return out
}

// value is a value of a class.
type value struct {
	class string
	value any
}

// values returns what a field is set to, one after the other.
func (s *schema) values() []value {
	out := []value{{"unset", nil}}
	add := func(class string, v any) { out = append(out, value{class, v}) }
	switch {
	case len(s.Enum) > 0:
		for _, v := range s.Enum {
			add("valid", v)
		}
		add("invalid", "Nonsense")
		return out
	case s.IntOrString:
		add("valid", "500m")
		add("odd", int64(0))
		add("odd", "-1")
		add("odd", "1000P")
		add("invalid", "much")
		return out
	}
	switch s.Type {
	case "integer", "number":
		s.numbers(add)
	case "boolean":
		add("valid", true)
		add("valid", false)
		add("invalid", "yes")
	case "array":
		one := s.Items.valid()
		add("odd", []any{})
		add("valid", []any{one})
		add("odd", []any{one, one})
		add("invalid", "text")
	case "object":
		add("odd", map[string]any{})
		if s.Open {
			add("odd", map[string]any{"nonsense": map[string]any{"a": int64(1)}})
		}
		if s.AdditionalProperties != nil {
			add("valid", map[string]any{"a": s.AdditionalProperties.valid()})
			add("odd", map[string]any{"": s.AdditionalProperties.valid(), "no such/key!": s.AdditionalProperties.valid()})
		}
		add("invalid", "text")
	default:
		s.texts(add)
	}
	return out
}

func (s *schema) numbers(add func(string, any)) {
	low, high := int64(0), int64(4)
	if s.Minimum != nil {
		low = int64(*s.Minimum)
		add("invalid", low-1)
	}
	if s.Maximum != nil {
		add("invalid", int64(*s.Maximum)+1)
		high = min(high, int64(*s.Maximum))
	}
	add("odd", low)
	add("valid", high)
	add("invalid", "text")
}

func (s *schema) texts(add func(string, any)) {
	for _, text := range []string{s.text(), "2Gi", "v8.5.8", "bad/image:v1", "", " ", "a b", "\u2603\n", "-1", "9999999999h", "[broken", strings.Repeat("a", max(1, min(s.MaxLength, 300)))} {
		class := "odd"
		if text == s.text() {
			class = "valid"
		}
		if !s.allows(text) {
			class = "invalid"
		}
		add(class, text)
	}
	add("invalid", int64(7))
}

// apply returns a spec with the value in its place; what leads there and is
// missing is made, with no more in it than has to be.
func (m mutation) apply(spec map[string]any) (map[string]any, error) {
	out, err := set(runtime.DeepCopyJSON(spec), m.path, m.root, m.value)
	if err != nil {
		return nil, fmt.Errorf("set %s: %w", m, err)
	}
	result, ok := out.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("set %s: spec became %T", m, out)
	}
	return result, nil
}

func set(into any, path []string, s *schema, leaf any) (any, error) {
	if len(path) == 0 {
		return leaf, nil
	}
	step, below := path[0], s.child(path[0])
	if below == nil {
		return nil, fmt.Errorf("there is no %s", step)
	}
	if step == element {
		list, _ := into.([]any)
		if len(list) == 0 {
			list = []any{below.valid()}
		}
		first, err := set(list[0], path[1:], below, leaf)
		if err != nil {
			return nil, err
		}
		if first == nil {
			return slices.Delete(slices.Clone(list), 0, 1), nil
		}
		list[0] = first
		return list, nil
	}
	object, _ := into.(map[string]any)
	if object == nil {
		object = map[string]any{}
	}
	have, found := object[step]
	if !found && len(path) > 1 {
		have = below.valid()
	}
	v, err := set(have, path[1:], below, leaf)
	if err != nil {
		return nil, err
	}
	if v == nil {
		delete(object, step)
	} else {
		object[step] = v
	}
	return object, nil
}

// changes says whether a mutation changes a spec at all.
func (m mutation) changes(spec map[string]any) bool {
	out, err := m.apply(spec)
	return err == nil && !equality.Semantic.DeepEqual(out, spec)
}

// find returns the mutation that a fault names.
func find(fault string, schemas map[string]*schema) (mutation, error) {
	rest, _ := strings.CutPrefix(fault, "mutate:")
	kind, _, _ := strings.Cut(rest, "/")
	if schemas[kind] == nil {
		return mutation{}, fmt.Errorf("read fault %q: there is no kind %q", fault, kind)
	}
	for _, m := range mutations(kind, schemas[kind]) {
		if m.String() == fault {
			return m, nil
		}
	}
	return mutation{}, fmt.Errorf("read fault %q: there is no such mutation", fault)
}

func sorted[V any](m map[string]V) []string {
	return slices.SortedFunc(maps.Keys(m), cmp.Compare[string])
}

func encode(v any) (string, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("encode: %w", err)
	}
	return string(text), nil
}
