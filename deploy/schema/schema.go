package schema

import (
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// MaxBytes is the largest that a CRD may be as Kubernetes keeps it, in JSON:
// client-side "kubectl apply" keeps a copy of the object in an annotation, and all
// annotations together may have 256 KiB.
const MaxBytes = 240 << 10

// node is one schema, or any other object of a CRD.
type node = map[string]any

// FinishDir rewrites every CRD in a directory. Doing so twice changes nothing.
func FinishDir(dir string) error {
	paths, err := filepath.Glob(filepath.Join(dir, "groups.tidb.dev_*.yaml"))
	if err != nil {
		return fmt.Errorf("list CRDs: %w", err)
	}
	if len(paths) == 0 {
		return fmt.Errorf("list CRDs: none in %s", dir)
	}
	for _, path := range paths {
		in, err := os.ReadFile(path) //nolint:gosec // a file of the repository
		if err != nil {
			return fmt.Errorf("read CRD: %w", err)
		}
		out, err := Finish(in)
		if err != nil {
			return fmt.Errorf("finish CRD %s: %w", filepath.Base(path), err)
		}
		if err := os.WriteFile(path, out, 0o644); err != nil { //nolint:gosec // as it was
			return fmt.Errorf("write CRD: %w", err)
		}
	}
	return nil
}

// Finish returns a CRD as it is delivered, from what controller-gen wrote. It
// is an error if the result is larger than MaxBytes.
func Finish(in []byte) ([]byte, error) {
	var crd node
	if err := yaml.Unmarshal(in, &crd); err != nil {
		return nil, fmt.Errorf("parse: %w", err)
	}
	spec := findChild(crd, "spec")
	versions, _ := spec["versions"].([]any)
	if len(versions) == 0 {
		return nil, fmt.Errorf("parse: no versions")
	}
	for _, v := range versions {
		version, _ := v.(node)
		root := findChild(findChild(version, "schema"), "openAPIV3Schema")
		walkSchemas(root, stringQuantity)
		walkSchemas(root, readableQuantity)
	}
	out, err := yaml.Marshal(crd)
	if err != nil {
		return nil, fmt.Errorf("write: %w", err)
	}
	kept, err := yaml.YAMLToJSON(out)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	if len(kept) > MaxBytes {
		return nil, fmt.Errorf("%d bytes are more than %d: shorten descriptions, or leave more out", len(kept), MaxBytes)
	}
	return append([]byte("---\n"), out...), nil
}

// stringQuantity makes a quantity that is marked as a string just that.
// controller-gen takes the mark but still lets integers pass, which CEL's
// functions for quantities do not take.
func stringQuantity(s node) {
	if s["type"] == "string" && s["x-kubernetes-int-or-string"] == true {
		delete(s, "x-kubernetes-int-or-string")
		delete(s, "anyOf")
	}
}

// generatedQuantity is the pattern of a quantity by controller-gen. It takes more for an exponent
// than Go can read: one such object would keep the operators from reading any of its kind.
const generatedQuantity = `^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$`

// quantity is the same with an exponent of two digits at most, so that none takes long to
// calculate with either.
const quantity = `^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?[0-9]{1,2}))?$`

// readableQuantity lets only those quantities pass that Go can read.
func readableQuantity(s node) {
	if s["pattern"] == generatedQuantity {
		s["pattern"] = quantity
	}
}

// walkSchemas calls visit for a schema and every schema below it.
func walkSchemas(schema node, visit func(node)) {
	if schema == nil {
		return
	}
	visit(schema)
	for _, property := range schemaProperties(schema) {
		below, _ := property.(node)
		walkSchemas(below, visit)
	}
	walkSchemas(findChild(schema, "items"), visit)
	walkSchemas(findChild(schema, "additionalProperties"), visit)
}

// schemaProperties returns a schema's properties, none for other schemas.
func schemaProperties(schema node) node { return findChild(schema, "properties") }

// findChild returns an object below another one, nil if there is none.
func findChild(of node, key string) node {
	below, _ := of[key].(node)
	return below
}
