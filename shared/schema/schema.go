package schema

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// Property is what an API server publishes of a field, as far as it says which fields are below.
type Property struct {
	// Type of the value, such as object.
	Type string `json:"type"`
	// Properties are the fields of an object, by name.
	Properties map[string]Property `json:"properties"`
	// Items are the elements of a list.
	Items *Property `json:"items"`
	// Preserves says that any field may be there.
	Preserves bool `json:"x-kubernetes-preserve-unknown-fields"`
}

// Read asks the API server for the schemas of the suite's kinds, by kind. Every account
// may read them, also one that may not read CRDs.
func Read(ctx context.Context, ask rest.Interface) (map[string]Property, error) {
	version := v1alpha1.GroupVersion()
	raw, err := ask.Get().AbsPath("/openapi/v3/apis", version.Group, version.Version).SetHeader("Accept", runtime.ContentTypeJSON).Do(ctx).Raw()
	if err != nil {
		return nil, err
	}
	var document struct {
		Components struct {
			Schemas map[string]Property `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(raw, &document); err != nil {
		return nil, fmt.Errorf("decode the schemas of %s: %w", version, err)
	}
	out := map[string]Property{}
	for name, s := range document.Components.Schemas {
		for _, kind := range v1alpha1.Kinds() {
			if strings.HasSuffix(name, "."+version.Version+"."+kind) {
				out[kind] = s
			}
		}
	}
	return out, nil
}

// FindOlder returns the CRDs that lack a field which the operator knows, each with the first
// such field, in the order of the documents. A kind whose schema is not published yet is left out.
func FindOlder(schemas map[string]Property) ([]string, error) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	var out []string
	for _, kind := range v1alpha1.Kinds() {
		known, err := scheme.New(v1alpha1.GroupVersion().WithKind(kind))
		if err != nil {
			return nil, err
		}
		if missing := findMissingField(reflect.TypeOf(known), schemas[kind], ""); missing != "" {
			plural, _ := meta.UnsafeGuessKindToResource(v1alpha1.GroupVersion().WithKind(kind))
			out = append(out, plural.GroupResource().String()+" (no "+missing+")")
		}
	}
	return out, nil
}

// findMissingField returns the first field of a type at a path that a schema lacks, empty if it has
// all. What is no object for the API server, as a time, and what it keeps unseen have no fields.
func findMissingField(of reflect.Type, in Property, path string) string {
	switch {
	case of.Kind() == reflect.Pointer:
		return findMissingField(of.Elem(), in, path)
	case of.Kind() == reflect.Slice && in.Items != nil:
		return findMissingField(of.Elem(), *in.Items, path+"[]")
	case of.Kind() != reflect.Struct || in.Type != "object" || in.Preserves:
		return ""
	}
	for i := range of.NumField() {
		name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		below, has := in.Properties[name]
		at := strings.TrimPrefix(path+"."+name, ".")
		if name == "" { // inline: its fields are those of the object
			below, has, at = in, true, path
		}
		if !has {
			return at
		}
		if missing := findMissingField(of.Field(i).Type, below, at); missing != "" {
			return missing
		}
	}
	return ""
}
