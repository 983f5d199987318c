package apply

import (
	"fmt"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/canonical"
)

// sayLiterally puts the literal fields of a group into its encoded form as they were
// said, with their nulls. Of a PodDisruptionBudget it says that maxUnavailable is not set: beside
// minAvailable Kubernetes takes no write.
func sayLiterally(obj client.Object, encoded map[string]any) error {
	if budget, is := obj.(*policyv1.PodDisruptionBudget); is && budget.Spec.MaxUnavailable == nil {
		return unstructured.SetNestedField(encoded, nil, "spec", "maxUnavailable")
	}
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

// sayAdditions says what another writer has added to the spec of an object whose last write is still wanted, and returns
// the fields: a switch that the owner leaves out is off, and a pod is the owner's as a whole. A
// write that leaves a switch out would leave it as the other has it.
func sayAdditions(obj client.Object, want, have map[string]any) []string {
	off := map[string]any{"suspended": false, "paused": false}
	whole := ""
	switch obj.(type) {
	case *v1alpha1.Instance:
		// A user may pause one.
		off, whole = map[string]any{"suspended": false, "retire": false, "stopPod": "", "inPlaceFrom": ""}, "podTemplate"
	case v1alpha1.Group:
	default:
		return nil
	}
	said, _ := want["spec"].(map[string]any)
	live, _ := have["spec"].(map[string]any)
	var added []string
	for field, value := range off {
		if there, set := live[field]; said != nil && set && said[field] == nil && there != value {
			said[field], added = value, append(added, field)
		}
	}
	if whole != "" && !equality.Semantic.DeepEqual(said[whole], live[whole]) {
		added = append(added, whole)
	}
	return added
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
