package docs_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/util/jsonpath"
	"sigs.k8s.io/yaml"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/deploy/docs"
)

// kinds are our kinds by the names that kubectl takes, each with its schema.
func kinds(t *testing.T) map[string]map[string]any {
	t.Helper()
	out := map[string]map[string]any{}
	for _, kind := range v1alpha1.Kinds() {
		text, err := os.ReadFile("../crds/groups.tidb.dev_" + strings.ToLower(kind) + "s.yaml")
		require.NoError(t, err)
		var crd struct {
			Spec struct {
				Versions []struct {
					Schema struct {
						Root map[string]any `json:"openAPIV3Schema"`
					} `json:"schema"`
				} `json:"versions"`
			} `json:"spec"`
		}
		require.NoError(t, yaml.Unmarshal(text, &crd))
		root := crd.Spec.Versions[0].Schema.Root
		out[strings.ToLower(kind)] = root
		out[strings.ToLower(kind)+"s"] = root
	}
	return out
}

func TestCommandsOfThePagesFitTheKinds(t *testing.T) {
	kinds, all, n := kinds(t), pages(t), 0
	flags := all["docs/reference/operators.md"]
	require.NotEmpty(t, flags)
	for name, page := range all {
		if strings.HasPrefix(name, "docs/decisions/") {
			continue
		}
		commands, err := docs.Commands(t.Context(), page)
		require.NoError(t, err, name)
		for _, args := range commands {
			n++
			if what := wrong(kinds, flags, args); what != "" {
				t.Errorf("%s: kubectl %q: %s", name, args, what)
			}
		}
	}
	assert.Greater(t, n, 150)
}

// wrong says what is wrong with a command, as far as that can be told without an API
// server. flags is the page that lists those of the operators.
func wrong(kinds map[string]map[string]any, flags string, args []string) string {
	if len(args) > 2 && args[0] == "-n" {
		args = args[2:]
	}
	verbs := []string{"annotate", "apply", "cordon", "create", "delete", "describe", "drain", "edit", "events", "exec", "get", "label", "logs", "patch", "port-forward", "rollout", "scale", "wait"}
	if len(args) == 0 || !slices.Contains(verbs, args[0]) {
		return "no verb of kubectl"
	}
	for i, a := range args {
		value := ""
		if i+1 < len(args) {
			value = args[i+1]
		}
		switch {
		case a == "-p" && args[1] == "deployment":
			if what := wrongArgument(flags, value); what != "" {
				return what
			}
		case a == "-p":
			if what := wrongPatch(kinds[args[1]], args, value); what != "" {
				return what
			}
		case strings.HasPrefix(value, "jsonpath=") && a == "-o", strings.HasPrefix(a, "--for=jsonpath="):
			path := strings.TrimPrefix(strings.TrimPrefix(value, "jsonpath="), "--for=jsonpath=")
			if a != "-o" {
				path, _, _ = strings.Cut(strings.TrimPrefix(a, "--for=jsonpath="), "}=")
				path += "}"
			}
			if err := jsonpath.New("").Parse(path); err != nil {
				return err.Error()
			}
		case strings.HasPrefix(a, "--for=condition="):
			condition := strings.TrimPrefix(a, "--for=condition=")
			if _, ours := v1alpha1.LookupCondition(condition); !ours && !slices.Contains([]string{"Established", "Available"}, condition) {
				return "no condition " + condition
			}
		case args[0] == "annotate" && strings.HasPrefix(a, v1alpha1.LabelPrefix):
			key := strings.TrimSuffix(strings.SplitN(a, "=", 2)[0], "-")
			if !slices.Contains([]string{v1alpha1.AnnotationRestart, v1alpha1.AnnotationEvictLeaders, v1alpha1.AnnotationReplace, v1alpha1.AnnotationRemoveFirst,
				v1alpha1.AnnotationStopAnyway, v1alpha1.AnnotationRecoverQuorum, v1alpha1.AnnotationAllowRemoval, v1alpha1.AnnotationAdopt, v1alpha1.AnnotationExpires}, key) {
				return "no annotation of a user: " + key
			}
		}
	}
	return ""
}

// wrongArgument says what is wrong with a patch that gives operators arguments, the only
// one that a Deployment gets.
func wrongArgument(flags, patch string) string {
	var steps []struct{ Op, Path, Value string }
	if err := json.Unmarshal([]byte(patch), &steps); err != nil {
		return err.Error()
	}
	for _, s := range steps {
		if s.Op != "add" || s.Path != "/spec/template/spec/containers/0/args/-" {
			return "a patch of a Deployment that adds no argument: " + s.Op + " " + s.Path
		}
		if flag, _, _ := strings.Cut(s.Value, "="); !strings.Contains(flags, "| `"+flag+"` |") {
			return "no flag " + flag
		}
	}
	return ""
}

// wrongPatch says which field of a patch a kind does not have.
func wrongPatch(root map[string]any, args []string, patch string) string {
	if root == nil {
		return "a patch of a kind that is not ours"
	}
	if !slices.Contains(args, "--type=json") {
		var fields map[string]any
		if err := json.Unmarshal([]byte(patch), &fields); err != nil {
			return err.Error()
		}
		return unknown(root, fields, "")
	}
	var steps []struct {
		Path  string `json:"path"`
		Value any    `json:"value"`
	}
	if err := json.Unmarshal([]byte(patch), &steps); err != nil {
		return err.Error()
	}
	for _, s := range steps {
		at := root
		for _, name := range strings.Split(strings.TrimPrefix(s.Path, "/"), "/") {
			if at = below(at, name); at == nil {
				return "no field " + s.Path
			}
		}
		if what := unknown(at, s.Value, s.Path); what != "" {
			return what
		}
	}
	return ""
}

// below returns the schema of a field, or of an item of a list; nil if there is none.
func below(schema map[string]any, name string) map[string]any {
	if schema["type"] == "object" && schema["properties"] == nil { // metadata
		return schema
	}
	if properties, ok := schema["properties"].(map[string]any); ok {
		field, _ := properties[name].(map[string]any)
		return field
	}
	items, _ := schema["items"].(map[string]any)
	return items
}

// unknown names a field of a value that its schema does not have.
func unknown(schema map[string]any, value any, path string) string {
	switch v := value.(type) {
	case map[string]any:
		for name, field := range v {
			next := below(schema, name)
			if next == nil {
				return "no field " + path + "/" + name
			}
			if what := unknown(next, field, path+"/"+name); what != "" {
				return what
			}
		}
	case []any:
		for _, item := range v {
			if what := unknown(below(schema, "0"), item, path); what != "" {
				return what
			}
		}
	}
	return ""
}
