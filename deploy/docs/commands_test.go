package docs_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/deploy/docs"
)

func TestCommandsOfThePagesFitTheKinds(t *testing.T) {
	known, all, n := resources(t), pages(t), 0
	flags := all["docs/reference/operators.md"]
	require.NotEmpty(t, flags)
	for name, page := range all {
		if strings.HasPrefix(name, "docs/decisions/") {
			continue
		}
		commands, err := docs.Commands(t.Context(), page)
		require.NoError(t, err, name)
		for _, c := range commands {
			n++
			if what := wrong(known, flags, c.Args); what != "" {
				t.Errorf("%s:%d: kubectl %q: %s", name, c.Line, c.Args, what)
			}
		}
	}
	assert.Greater(t, n, 150)
}

func TestAWrongCommandIsFound(t *testing.T) {
	known := resources(t)
	for command, want := range map[string]string{
		"get tikvgrups":                                      "no resource tikvgrups",
		"-n prod get tgkv,podz":                              "no resource podz",
		"describe instance/basic-pd-0 nod/a":                 "no resource nod",
		"wait --for=condition=Ready tidbcluser":              "no resource tidbcluser",
		"logs deploymentt/pdgroup-operator":                  "no resource deploymentt",
		"events --for=tikvgrup/basic":                        "no resource tikvgrup",
		"create sercet generic a":                            "no resource sercet",
		"delete -l a=b -A pvcs":                              "no resource pvcs",
		"gett pods":                                          "no verb of kubectl",
		"get pdgroup -o custom-columns=A:.status.clusterIDs": "no field .status.clusterIDs",
		"get pdgroup a -o jsonpath={.spec.replica}":          "no field .spec.replica",
		"get pdgroup a -o jsonpath={.spec.replicas":          "unclosed action",
		"get tidb-groups -o custom-columns=A:{.metadata":     "unclosed action",
	} {
		assert.Contains(t, wrong(known, "", strings.Fields(command)), want, command)
	}
	ranged := func(field string) []string {
		return []string{"get", "pdgroup", "-o", "jsonpath={range .status.members[*]}{" + field + "}{end}{.status.clusterID}"}
	}
	assert.Empty(t, wrong(known, "", ranged(".healthy")))
	assert.Equal(t, "no field .health", wrong(known, "", ranged(".health")))
	for _, command := range []string{
		"get tidb-all -A", "get tgkv,pvc -l a=b", "-n prod get tikvgroups.groups.tidb.dev basic", "delete pod a b", "describe node", "apply -f file", "delete -k overlay",
		"logs -l a=b", "exec basic-pd-0 -- sh -c x", "port-forward svc/basic-tidb 4000", "get pdgroup a -o jsonpath={.status.clusterID}",
		"get pdgroup -o custom-columns=NAME:.metadata.name,ID:.status.clusterID", "create secret generic a",
	} {
		assert.Empty(t, wrong(known, "", strings.Fields(command)), command)
	}
}

func TestBlocksOfAShellAreAllRead(t *testing.T) {
	page := "text\n\n```sh\nkubectl get pods\n\nkubectl get \\\n  nodes\n```\n\n1. step\n\n   ```bash\n   kubectl get $(kubectl get pvc) &\n   ```\n"
	got, err := docs.Commands(t.Context(), page)
	require.NoError(t, err)
	for i, want := range []struct {
		from, to int // bash counts a command of several lines by one of them
		args     string
	}{{4, 4, "get pods"}, {6, 7, "get nodes"}, {13, 13, "get pvc"}, {13, 13, "get"}} {
		require.Greater(t, len(got), i)
		assert.Equal(t, want.args, strings.Join(got[i].Args, " "))
		assert.GreaterOrEqual(t, got[i].Line, want.from, want.args)
		assert.LessOrEqual(t, got[i].Line, want.to, want.args)
	}

	_, err = docs.Commands(t.Context(), "\n```sh\nkubectl get pods | nosuchprogram\n```\n")
	require.ErrorContains(t, err, "line 3: no program nosuchprogram")
	_, err = docs.Commands(t.Context(), "```sh\nif\n```\n")
	require.Error(t, err)
}

func TestCommandsWithinLinesAreRead(t *testing.T) {
	page := "`kubectl get pods` and `kubectl delete pod a`\n\n```sh\necho `kubectl get nodes`\n```\n\nBeside it: `kubectl get\npvc`, `kubectl describe pod -l a=b`.\n"
	got, err := docs.Shell{}.RunInline(t.Context(), page)
	require.NoError(t, err)
	assert.Equal(t, []docs.Command{{Line: 1, Args: []string{"get", "pods"}}, {Line: 1, Args: []string{"delete", "pod", "a"}}, {Line: 8, Args: []string{"describe", "pod", "-l", "a=b"}}}, got)
}

func TestBlocksOfAPageShareAShellAndKubectlMayBeAnother(t *testing.T) {
	program := filepath.Join(t.TempDir(), "kubectl")
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/bash\necho \"$SAYS$AT\"\n"), 0o700)) //nolint:gosec // a program
	shell := docs.Shell{Kubectl: program, Env: []string{"SAYS=line"}}
	got, err := shell.RunBlocks(t.Context(), "```sh\na=$(kubectl get pods)\n```\n\n```sh\nkubectl get $a\n```\n")
	require.NoError(t, err)
	assert.Equal(t, []docs.Command{{Line: 2, Args: []string{"get", "pods"}}, {Line: 6, Args: []string{"get", "line2"}}}, got)
}

// wrong says what is wrong with a command, as far as that can be told without an API
// server. flags is the page that lists those of the operators.
func wrong(known catalog, flags string, args []string) string {
	if len(args) > 2 && args[0] == "-n" {
		args = args[2:]
	}
	verbs := []string{"annotate", "apply", "cordon", "create", "delete", "describe", "drain", "edit", "events", "exec", "get", "label", "logs", "patch", "port-forward", "rollout", "scale", "wait"}
	if len(args) == 0 || !slices.Contains(verbs, args[0]) {
		return "no verb of kubectl"
	}
	types := typesOf(args)
	for _, name := range types {
		if !known.has(name) {
			return "no resource " + name
		}
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
			if what := wrongPatch(known.only(types), args, value); what != "" {
				return what
			}
		case a == "-o", strings.HasPrefix(a, "--for=jsonpath="):
			if what := wrongPaths(known.only(types), pathsOf(a, value)); what != "" {
				return what
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
