package apply

import (
	"fmt"

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
