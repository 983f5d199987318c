package campaign

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/tidb-groups/tidb-groups/e2e/crd"
)

// schema is what of an OpenAPI schema tells which values a field may take.
type schema struct {
	Type                 string             `json:"type"`
	Properties           map[string]*schema `json:"properties"`
	Items                *schema            `json:"items"`
	AdditionalProperties *schema            `json:"additionalProperties"`
	Required             []string           `json:"required"`
	Enum                 []any              `json:"enum"`
	Minimum              *float64           `json:"minimum"`
	Maximum              *float64           `json:"maximum"`
	MinLength            int                `json:"minLength"`
	MaxLength            int                `json:"maxLength"`
	MinItems             int                `json:"minItems"`
	MaxItems             int                `json:"maxItems"`
	MaxProperties        int                `json:"maxProperties"`
	Pattern              string             `json:"pattern"`
	Format               string             `json:"format"`
	IntOrString          bool               `json:"x-kubernetes-int-or-string"`
	Open                 bool               `json:"x-kubernetes-preserve-unknown-fields"`
}

// specSchemas returns the schema of spec of every kind, from the CRDs in a
// directory.
func specSchemas(dir string) (map[string]*schema, error) {
	all, err := crd.ReadSchemas(dir)
	if err != nil {
		return nil, err
	}
	out := map[string]*schema{}
	for kind, whole := range all {
		text, err := json.Marshal(whole.Properties["spec"])
		if err != nil {
			return nil, fmt.Errorf("encode the schema of %s: %w", kind, err)
		}
		spec := &schema{}
		if err := json.Unmarshal(text, spec); err != nil {
			return nil, fmt.Errorf("read the schema of %s: %w", kind, err)
		}
		out[kind] = spec
	}
	return out, nil
}

// element is a step of a path that leads into the first element of a list, and
// anyKey one into a map.
const (
	element = "[0]"
	anyKey  = "key"
)

// each visits every field below a schema, in order, with its path.
func (s *schema) each(path []string, visit func(path []string, field *schema)) {
	descend := func(step string, child *schema) {
		below := append(append([]string(nil), path...), step)
		visit(below, child)
		child.each(below, visit)
	}
	for _, name := range sortedKeys(s.Properties) {
		descend(name, s.Properties[name])
	}
	if s.Items != nil {
		descend(element, s.Items)
	}
	if s.AdditionalProperties != nil {
		descend(anyKey, s.AdditionalProperties)
	}
}

// child returns the schema that a step of a path leads to.
func (s *schema) child(step string) *schema {
	switch {
	case s.Properties[step] != nil:
		return s.Properties[step]
	case step == element:
		return s.Items
	default:
		return s.AdditionalProperties
	}
}

// valid returns the least value that a schema allows, as far as the schema says.
func (s *schema) valid() any {
	switch {
	case len(s.Enum) > 0:
		return s.Enum[0]
	case s.IntOrString:
		return "1"
	}
	switch s.Type {
	case "object":
		out := map[string]any{}
		for _, name := range s.Required {
			out[name] = s.Properties[name].valid()
		}
		return out
	case "array":
		out := []any{}
		for range s.MinItems {
			out = append(out, s.Items.valid())
		}
		return out
	case "integer", "number":
		if s.Minimum != nil {
			return int64(*s.Minimum)
		}
		return int64(1)
	case "boolean":
		return true
	default:
		return s.text()
	}
}

// text returns a text that a schema allows.
func (s *schema) text() string {
	pattern, err := regexp.Compile(s.Pattern)
	if err != nil {
		return ""
	}
	for _, text := range []string{"a", "1Gi", "/a", "v8.5.8", "1h", "A"} {
		if pattern.MatchString(text) && len(text) >= s.MinLength {
			return text
		}
	}
	return strings.Repeat("a", s.MinLength)
}

// allows says whether a schema allows a text.
func (s *schema) allows(text string) bool {
	pattern, err := regexp.Compile(s.Pattern)
	return err == nil && pattern.MatchString(text) && len(text) >= s.MinLength && (s.MaxLength == 0 || len(text) <= s.MaxLength)
}
