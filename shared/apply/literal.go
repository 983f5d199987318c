package apply

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/canonical"
)

// sayLiterally puts the literal fields of a group into its encoded form as they were
// said, with their nulls.
func sayLiterally(obj client.Object, encoded map[string]any) error {
	g, ok := obj.(v1alpha1.Group)
	if !ok {
		return nil
	}
	for field, raw := range canonical.LiteralFields(g.GetComponentSpec()) {
		said := canonical.DecodeLiteral(raw)
		if said == nil {
			continue
		}
		if err := unstructured.SetNestedField(encoded, said, "spec", field); err != nil {
			return fmt.Errorf("write spec.%s: %w", field, err)
		}
	}
	return nil
}

// setBack says of an object whose last write is still wanted what another writer has added to it, and reports whether
// there is anything: a switch that the owner leaves out is off, and a pod is the owner's as a whole. A write
// that leaves a switch out would leave it as the other has it.
func setBack(obj client.Object, want, have map[string]any) bool {
	off, changed := map[string]any{"suspended": false, "paused": false}, false
	switch obj.(type) {
	case *v1alpha1.Instance:
		// A user may pause one.
		off = map[string]any{"suspended": false, "retire": false, "stopPod": "", "inPlaceFrom": ""}
		template, _, _ := unstructured.NestedFieldNoCopy(want, "spec", "podTemplate")
		there, _, _ := unstructured.NestedFieldNoCopy(have, "spec", "podTemplate")
		changed = !reflect.DeepEqual(template, there)
	case v1alpha1.Group:
	default:
		return false
	}
	said, _, _ := unstructured.NestedFieldNoCopy(want, "spec")
	live, _, _ := unstructured.NestedFieldNoCopy(have, "spec")
	fields, known := said.(map[string]any)
	others, seen := live.(map[string]any)
	if !known || !seen {
		return false
	}
	for field, value := range off {
		if there, set := others[field]; set && fields[field] == nil && there != value {
			fields[field], changed = value, true
		}
	}
	return changed
}

// hashObject returns the hash of an object to apply, in which the empties of literal fields
// count.
func hashObject(obj client.Object, encoded map[string]any) (string, error) {
	if g, ok := obj.(v1alpha1.Group); ok {
		if empties := canonical.EmptyLiterals(g.GetComponentSpec()); len(empties) > 0 {
			return canonical.Hash(map[string]any{"object": encoded, "empties": empties})
		}
	}
	return canonical.Hash(encoded)
}
