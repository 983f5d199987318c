package rig

import (
	"fmt"
	"path/filepath"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/tidb-groups/tidb-groups/e2e/crd"
	"github.com/tidb-groups/tidb-groups/shared/testkit/binaries"
)

// schemas are those of the suite's kinds, by kind.
type schemas map[string]*apiextensionsv1.JSONSchemaProps

// loadSchemas reads those of the CRDs.
func loadSchemas() (schemas, error) {
	root, err := binaries.Root()
	if err != nil {
		return nil, fmt.Errorf("find the CRDs: %w", err)
	}
	return crd.ReadSchemas(filepath.Join(root, "deploy", "crds"))
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
