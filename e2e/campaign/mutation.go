package campaign

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
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

// listMutations returns every mutation of a kind's spec, in order.
func listMutations(kind string, spec *schema) []mutation {
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
	out, err := setValue(runtime.DeepCopyJSON(spec), m.path, m.root, m.value)
	if err != nil {
		return nil, fmt.Errorf("set %s: %w", m, err)
	}
	result, ok := out.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("set %s: spec became %T", m, out)
	}
	return result, nil
}

func setValue(into any, path []string, s *schema, leaf any) (any, error) {
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
		first, err := setValue(list[0], path[1:], below, leaf)
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
	v, err := setValue(have, path[1:], below, leaf)
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

// changesSpec says whether a mutation changes a spec at all.
func (m mutation) changesSpec(spec map[string]any) bool {
	out, err := m.apply(spec)
	return err == nil && !equality.Semantic.DeepEqual(out, spec)
}

// halfway is a spec on its way back from a mutation: what it has put into maps that
// there were not is gone, and the maps are there, empty.
func (m mutation) halfway(before, after map[string]any) (map[string]any, bool) {
	if inner := m.path[min(2, len(m.path)):]; m.class != "valid" || slices.Contains(inner, element) || m.at(before) != nil {
		return nil, false // an element without the field may mean something that is wrong
	}
	emptied := m
	emptied.value = nil
	out, err := emptied.apply(after)
	if err != nil || equality.Semantic.DeepEqual(out, before) || equality.Semantic.DeepEqual(out, after) {
		return nil, false
	}
	return out, true
}

// listGroupFields are the fields of a TidbCluster of which each element is a group.
func listGroupFields() []string {
	var out []string
	for _, c := range v1alpha1.ComponentTable() {
		out = append(out, c.Component)
	}
	return out
}

// stopsAll says whether a mutation asks for all members of a group to stop: it
// suspends the group, or it takes its entry away or gives it another name, which
// deletes it.
func (m mutation) stopsAll() bool {
	last := m.path[len(m.path)-1]
	if last == "suspended" {
		return m.value == true
	}
	if m.kind != v1alpha1.KindTidbCluster || !slices.Contains(listGroupFields(), m.path[0]) {
		return false
	}
	return len(m.path) == 1 || slices.Equal(m.path[1:], []string{element}) || slices.Equal(m.path[1:], []string{element, "name"})
}

// isVolumeSize says whether a mutation is one of the size of volumes.
func (m mutation) isVolumeSize() bool { return m.path[len(m.path)-1] == "storage" }

// growsVolumes says whether a mutation makes volumes larger than a spec has them, which
// cannot be taken back.
func (m mutation) growsVolumes(spec map[string]any) bool {
	text, ok := m.value.(string)
	if !m.isVolumeSize() || !ok {
		return false
	}
	size, err := resource.ParseQuantity(text)
	had, found := m.at(spec).(string)
	before, wrong := resource.ParseQuantity(had)
	return err == nil && found && wrong == nil && size.Cmp(before) > 0
}

// at returns what a spec has where a mutation puts its value, nil for nothing.
func (m mutation) at(spec map[string]any) any {
	var here any = spec
	for _, step := range m.path {
		switch into := here.(type) {
		case map[string]any:
			here = into[step]
		case []any:
			if len(into) == 0 {
				return nil
			}
			here = into[0]
		default:
			return nil
		}
	}
	return here
}

// findMutation returns the mutation that a fault names.
func findMutation(fault string, schemas map[string]*schema) (mutation, error) {
	rest, _ := strings.CutPrefix(fault, "mutate:")
	kind, _, _ := strings.Cut(rest, "/")
	if schemas[kind] == nil {
		return mutation{}, fmt.Errorf("read fault %q: there is no kind %q", fault, kind)
	}
	for _, m := range listMutations(kind, schemas[kind]) {
		if m.String() == fault {
			return m, nil
		}
	}
	return mutation{}, fmt.Errorf("read fault %q: there is no such mutation", fault)
}

func sortedKeys[V any](m map[string]V) []string {
	return slices.SortedFunc(maps.Keys(m), cmp.Compare[string])
}

func encodeJSON(v any) (string, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("encode: %w", err)
	}
	return string(text), nil
}
