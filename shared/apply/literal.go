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

// switchesOff are the switches that someone else may have set in the spec of an object, and what
// they are where their owner leaves them out. Nil: additions to such an object are left.
func switchesOff(obj client.Object) map[string]any {
	switch obj.(type) {
	case *v1alpha1.Instance:
		// A user may pause one.
		return map[string]any{"suspended": false, "retire": false, "stopPod": "", "inPlaceFrom": ""}
	case v1alpha1.Group:
		return map[string]any{"suspended": false, "paused": false}
	}
	return nil
}

// findAdditions returns what another writer has added to the spec of an object whose last write is
// still wanted, as the owner has it: a write that leaves a switch out would leave it as the
// other has it. A pod template is the owner's as a whole.
func findAdditions(obj client.Object, want, have map[string]any) map[string]any {
	said, _ := want["spec"].(map[string]any)
	live, _ := have["spec"].(map[string]any)
	added := map[string]any{}
	for field, off := range switchesOff(obj) {
		if there, set := live[field]; set && said[field] == nil && there != off {
			added[field] = off
		}
	}
	const template = "podTemplate"
	if _, is := obj.(*v1alpha1.Instance); is && !equality.Semantic.DeepEqual(said[template], live[template]) {
		added[template] = said[template]
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
