package canonical

import (
	"encoding/json"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// LiteralFields are the fields of a group's spec in which nulls and empties mean
// something: they hold Kubernetes' own types, or a patch of them. An empty affinity
// is none, where one that is left out is the default; a patch takes away with null
// and empties a list with []. So they are handed on and compared as they were said.
func LiteralFields(spec *v1alpha1.ComponentSpec) map[string]*runtime.RawExtension {
	return map[string]*runtime.RawExtension{"affinity": spec.Affinity, "overlay": spec.Overlay, "securityContext": spec.SecurityContext}
}

// EmptyLiterals returns what Hash does not count of a group's spec although it means
// something: those of its literal fields that hold a null or something empty, as
// text. There are none in nearly every spec, whose hash is what it always was.
func EmptyLiterals(spec *v1alpha1.ComponentSpec) map[string]string {
	var out map[string]string
	for field, raw := range LiteralFields(spec) {
		said := DecodeLiteral(raw)
		if said == nil {
			continue
		}
		if counted, any := pruneEmpty(DecodeLiteral(raw)); any && reflect.DeepEqual(said, counted) {
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

// DecodeLiteral returns what a field says, nil if it says nothing. What is no JSON cannot
// be encoded either, and encoding the object reports that.
func DecodeLiteral(raw *runtime.RawExtension) any {
	if raw == nil {
		return nil
	}
	var out any
	if err := utiljson.Unmarshal(raw.Raw, &out); err != nil {
		return nil
	}
	return out
}

// HasSameLiterals reports whether live says the same as desired in every literal field
// that desired says. They are applied as a whole, so that no other writer adds to them.
func HasSameLiterals(live, desired any) bool {
	have, ok := live.(v1alpha1.Group)
	want, too := desired.(v1alpha1.Group)
	if !ok || !too {
		return true
	}
	there := LiteralFields(have.GetComponentSpec())
	for field, raw := range LiteralFields(want.GetComponentSpec()) {
		if said := DecodeLiteral(raw); said != nil && !reflect.DeepEqual(said, DecodeLiteral(there[field])) {
			return false
		}
	}
	return true
}
