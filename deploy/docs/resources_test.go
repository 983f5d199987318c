package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/util/jsonpath"
	"sigs.k8s.io/yaml"
)

// catalog are the resources that commands may name, each with the schema of its kind; nil
// where the kind is not ours, or there are several.
type catalog map[string]map[string]any

// has reports whether kubectl finds a resource by a name. Kubernetes' own may be followed by
// their group.
func (c catalog) has(name string) bool {
	plain, _, _ := strings.Cut(name, ".")
	return slices.ContainsFunc([]string{name, plain}, func(n string) bool { _, ok := c[strings.ToLower(n)]; return ok })
}

// only is the schema of the one kind of ours that a command is about; nil if it is not one.
func (c catalog) only(types []string) map[string]any {
	if len(types) != 1 {
		return nil
	}
	return c[strings.ToLower(types[0])]
}

// builtIn are the kinds of Kubernetes that the pages use, by the names that kubectl takes.
func builtIn() []string {
	return strings.Fields(`
		clusterrolebinding clusterrolebindings configmap configmaps cm controllerrevision controllerrevisions
		customresourcedefinition customresourcedefinitions crd crds deployment deployments deploy
		endpointslice endpointslices event events ev job jobs lease leases namespace namespaces ns node nodes no
		persistentvolumeclaim persistentvolumeclaims pvc persistentvolume persistentvolumes pv
		pod pods po poddisruptionbudget poddisruptionbudgets pdb rolebinding rolebindings
		secret secrets service services svc serviceaccount serviceaccounts sa storageclass storageclasses sc token
		validatingadmissionpolicy validatingadmissionpolicies validatingadmissionpolicybinding validatingadmissionpolicybindings`)
}

// resources returns the catalog: every name of our CRDs, and Kubernetes' own.
func resources(t *testing.T) catalog {
	t.Helper()
	out := catalog{}
	for _, name := range builtIn() {
		out[name] = nil
	}
	files, err := filepath.Glob("../crds/groups.tidb.dev_*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		text, err := os.ReadFile(file) //nolint:gosec // a file of the repository
		require.NoError(t, err)
		var crd struct {
			Spec struct {
				Group string `json:"group"`
				Names struct {
					Plural     string   `json:"plural"`
					Singular   string   `json:"singular"`
					ShortNames []string `json:"shortNames"`
					Categories []string `json:"categories"`
				} `json:"names"`
				Versions []struct {
					Schema struct {
						Root map[string]any `json:"openAPIV3Schema"`
					} `json:"schema"`
				} `json:"versions"`
			} `json:"spec"`
		}
		require.NoError(t, yaml.Unmarshal(text, &crd))
		names := crd.Spec.Names
		for _, category := range names.Categories {
			out[category] = nil
		}
		for _, name := range append(names.ShortNames, names.Singular, names.Plural, names.Plural+"."+crd.Spec.Group) {
			out[name] = crd.Spec.Versions[0].Schema.Root
		}
	}
	return out
}

// typesOf are the resources that the arguments of kubectl name. The first is the verb.
func typesOf(args []string) []string {
	words, files := positional(args[1:])
	var out []string
	switch {
	case args[0] == "events":
		for _, a := range args {
			if about, found := strings.CutPrefix(a, "--for="); found {
				words = append(words, about)
			}
		}
	case args[0] == "create" && len(words) > 0:
		return words[:1]
	case slices.Contains([]string{"annotate", "delete", "describe", "edit", "get", "label", "patch", "scale", "wait"}, args[0]):
		if !files && len(words) > 0 && !strings.Contains(words[0], "/") {
			return strings.Split(words[0], ",")
		}
	}
	for _, word := range words {
		if kind, _, found := strings.Cut(word, "/"); found && !strings.Contains(word, "=") {
			out = append(out, kind)
		}
	}
	return out
}

// positional are the arguments that are no flags, and whether a file says what is meant.
func positional(args []string) (words []string, files bool) {
	valued := []string{"-n", "-l", "-o", "-p", "-f", "-k", "-c", "--namespace", "--selector", "--type", "--for", "--timeout"}
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case a == "--":
			return words, files
		case slices.Contains(valued, a):
			files = files || a == "-f" || a == "-k"
			i++
		case !strings.HasPrefix(a, "-"):
			words = append(words, a)
		}
	}
	return words, files
}

// pathsOf are the paths of fields that an argument, or the value after it, asks for.
func pathsOf(a, value string) []string {
	if path, found := strings.CutPrefix(a, "--for=jsonpath="); found {
		path, _, _ = strings.Cut(path, "}=")
		return []string{path + "}"}
	}
	if path, found := strings.CutPrefix(value, "jsonpath="); found {
		return []string{path}
	}
	columns, found := strings.CutPrefix(value, "custom-columns=")
	if !found {
		return nil
	}
	var out []string
	for _, column := range regexp.MustCompile(`(?:^|,)[^,:]+:`).Split(columns, -1)[1:] {
		if !strings.HasPrefix(column, "{") {
			column = "{" + column + "}"
		}
		out = append(out, column)
	}
	return out
}

// plain is a path that names one field and no more, the beginning of a range over a list, or
// its end.
var plain = regexp.MustCompile(`\{(?:(range )?(\.[a-zA-Z.]+)(\[\*\])?|(end))\}`)

// wrongPaths says which path is not kubectl's language, or names a field that the kind does
// not have.
func wrongPaths(root map[string]any, paths []string) string {
	for _, path := range paths {
		if err := jsonpath.New("").Parse(path); err != nil {
			return path + ": " + err.Error()
		}
		within := []map[string]any{root} // in the list that the innermost range goes through
		for _, m := range plain.FindAllStringSubmatch(path, -1) {
			if m[4] != "" {
				within = within[:len(within)-1]
				continue
			}
			at := field(within[len(within)-1], m[2])
			if at == nil && root != nil {
				return "no field " + m[2]
			}
			if m[1] != "" {
				items, _ := at["items"].(map[string]any)
				within = append(within, items)
			}
		}
	}
	return ""
}

// field is the schema of a field; nil if there is none. What has names of its own is not
// looked into.
func field(at map[string]any, path string) map[string]any {
	for _, name := range strings.Split(strings.TrimPrefix(path, "."), ".") {
		if at != nil && at["additionalProperties"] != nil {
			return at
		}
		at = below(at, name)
	}
	return at
}
