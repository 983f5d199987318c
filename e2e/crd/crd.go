// Package crd reads the schemas of the suite's kinds from the CRDs of deploy, for who has
// to know which fields there are.
package crd

import (
	"fmt"
	"os"
	"path/filepath"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// ReadSchemas returns the schema of every kind of the suite, from the CRDs in a directory.
func ReadSchemas(dir string) (map[string]*apiextensionsv1.JSONSchemaProps, error) {
	files, err := filepath.Glob(filepath.Join(dir, "groups.tidb.dev_*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("list CRDs: %w", err)
	}
	out := map[string]*apiextensionsv1.JSONSchemaProps{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read CRD: %w", err)
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal(text, &crd); err != nil {
			return nil, fmt.Errorf("read CRD %s: %w", filepath.Base(file), err)
		}
		for _, v := range crd.Spec.Versions {
			out[crd.Spec.Names.Kind] = v.Schema.OpenAPIV3Schema
		}
	}
	return out, nil
}
