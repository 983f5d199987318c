package apply

import (
	"encoding/json"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// literalFields are the fields of a group's spec in which nulls and empties mean
// something: they hold Kubernetes' own types, or a patch of them. An empty affinity
// is none, where one that is left out is the default; a patch takes away with null
// and empties a list with []. So they are handed on and compared as they were said.
func literalFields(spec *v1alpha1.ComponentSpec) map[string]*runtime.RawExtension {
	return map[string]*runtime.RawExtension{"affinity": spec.Affinity, "overlay": spec.Overlay, "securityContext": spec.SecurityContext}
}

// EmptyLiterals returns what Hash does not count of a group's spec although it means
// something: those of its literal fields that hold a null or something empty, as
// text. There are none in nearly every spec, whose hash is what it always was.
func EmptyLiterals(spec *v1alpha1.ComponentSpec) map[string]string {
	var out map[string]string
	for field, raw := range literalFields(spec) {
		said := decodeLiteral(raw)
		if said == nil {
			continue
		}
		if counted, any := pruneEmpty(decodeLiteral(raw)); any && reflect.DeepEqual(said, counted) {
			continue
		}
		text, err := json.Marshal(said)
		if err != nil {
			continue // not from JSON, which it was decoded from
		}
		if out == nil {
			out = map[string]string{}
		}
		out[field] = string(text)
	}
	return out
}

// decodeLiteral returns what a field says, nil if it says nothing. What is no JSON cannot
// be encoded either, and encoding the object reports that.
func decodeLiteral(raw *runtime.RawExtension) any {
	if raw == nil {
		return nil
	}
	var out any
	if err := utiljson.Unmarshal(raw.Raw, &out); err != nil {
		return nil
	}
	return out
}

// sayLiterally puts the literal fields of a group into its encoded form as they were
// said, with their nulls.
func sayLiterally(obj client.Object, encoded map[string]any) error {
	g, ok := obj.(v1alpha1.Group)
	if !ok {
		return nil
	}
	for field, raw := range literalFields(g.GetComponentSpec()) {
		said := decodeLiteral(raw)
		if said == nil {
			continue
		}
		if err := unstructured.SetNestedField(encoded, said, "spec", field); err != nil {
			return fmt.Errorf("write spec.%s: %w", field, err)
		}
	}
	return nil
}

// hashObject returns the hash of an object to apply, in which the empties of literal fields
// count.
func hashObject(obj client.Object, encoded map[string]any) (string, error) {
	if g, ok := obj.(v1alpha1.Group); ok {
		if empties := EmptyLiterals(g.GetComponentSpec()); len(empties) > 0 {
			return Hash(map[string]any{"object": encoded, "empties": empties})
		}
	}
	return Hash(encoded)
}

// hasSameLiterals reports whether live says the same as desired in every literal field
// that desired says. They are applied as a whole, so that no other writer adds to them.
func hasSameLiterals(live, desired client.Object) bool {
	have, ok := live.(v1alpha1.Group)
	want, too := desired.(v1alpha1.Group)
	if !ok || !too {
		return true
	}
	there := literalFields(have.GetComponentSpec())
	for field, raw := range literalFields(want.GetComponentSpec()) {
		if said := decodeLiteral(raw); said != nil && !reflect.DeepEqual(said, decodeLiteral(there[field])) {
			return false
		}
	}
	return true
}
