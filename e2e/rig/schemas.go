package rig

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/tidb-groups/tidb-groups/shared/testkit/binaries"
)

// schemas are those of the suite's kinds, by kind.
type schemas map[string]*apiextensionsv1.JSONSchemaProps

// loadSchemas reads the CRDs.
func loadSchemas() (schemas, error) {
	root, err := binaries.Root()
	if err != nil {
		return nil, fmt.Errorf("find the CRDs: %w", err)
	}
	files, err := filepath.Glob(filepath.Join(root, "deploy", "crds", "*_*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("find the CRDs: %w", err)
	}
	out := schemas{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read a CRD: %w", err)
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal(text, &crd); err != nil {
			return nil, fmt.Errorf("read CRD %s: %w", file, err)
		}
		out[crd.Spec.Names.Kind] = crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	}
	return out, nil
}

// has reports whether objects of a kind have a field.
func (s schemas) has(kind string, steps []string) bool {
	at := s[kind]
	for _, step := range steps {
		if at == nil {
			return false
		}
		if strings.HasPrefix(step, "[") {
			if at.Items == nil {
				return false
			}
			at = at.Items.Schema
			continue
		}
		if at.XPreserveUnknownFields != nil && *at.XPreserveUnknownFields || at.AdditionalProperties != nil {
			return true
		}
		if at.Items != nil {
			at = at.Items.Schema
		}
		below, found := at.Properties[step]
		if !found {
			return false
		}
		at = &below
	}
	return at != nil
}
