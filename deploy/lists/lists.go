package lists

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// nameForms are the ways in which a list may name a group.
func nameForms() []func(v1alpha1.ComponentInfo) string {
	return []func(v1alpha1.ComponentInfo) string{
		func(c v1alpha1.ComponentInfo) string { return c.Resource },
		func(c v1alpha1.ComponentInfo) string { return c.Resource + "/scale" },
		func(c v1alpha1.ComponentInfo) string { return "'" + strings.ToLower(c.Kind) + "'" },
		func(c v1alpha1.ComponentInfo) string { return strings.ToLower(c.Kind) + "-operator" },
	}
}

// completeList adds the groups that a list lacks, if it names the first three of the table. The
// result is sorted; other lists are left as they are.
func completeList(items []string) []string {
	table := v1alpha1.ComponentTable()
	for _, form := range nameForms() {
		if !slices.Contains(items, form(table[0])) || !slices.Contains(items, form(table[1])) || !slices.Contains(items, form(table[2])) {
			continue
		}
		out := slices.Clone(items)
		for _, c := range table {
			if !slices.Contains(out, form(c)) {
				out = append(out, form(c))
			}
		}
		slices.Sort(out)
		return out
	}
	return items
}

// CompleteManifest returns a manifest whose lists on one line are complete.
func CompleteManifest(text string) string {
	return regexp.MustCompile(`\[[^\[\]\n]*\]`).ReplaceAllStringFunc(text, func(list string) string {
		return "[" + strings.Join(completeList(strings.Split(strings.Trim(list, "[]"), ", ")), ", ") + "]"
	})
}

// CompleteLines returns a manifest whose lists of one entry a line are complete: the bases of the
// operators, and the ports at which Prometheus reads what members tell of themselves. What is
// missing comes behind the last entry that is there.
func CompleteLines(text string) string {
	table := v1alpha1.ComponentTable()
	for _, form := range []func(v1alpha1.ComponentInfo) string{
		func(c v1alpha1.ComponentInfo) string { return "bases/" + strings.ToLower(c.Kind) },
		func(c v1alpha1.ComponentInfo) string {
			return fmt.Sprintf("port: %d # %s", c.StatusPort, strings.TrimSuffix(c.Kind, "Group"))
		},
	} {
		entry := func(c v1alpha1.ComponentInfo) *regexp.Regexp {
			return regexp.MustCompile(`(?m)^( *- (?:\.\./)*)` + regexp.QuoteMeta(form(c)) + `$`)
		}
		if !entry(table[0]).MatchString(text) || !entry(table[1]).MatchString(text) || !entry(table[2]).MatchString(text) {
			continue
		}
		last := []int(nil)
		for _, c := range table {
			if at := entry(c).FindStringSubmatchIndex(text); at != nil && (last == nil || at[0] > last[0]) {
				last = at
			}
		}
		begin, end := text[last[2]:last[3]], last[1]
		for _, c := range table {
			if !entry(c).MatchString(text) {
				line := "\n" + begin + form(c)
				text, end = text[:end]+line+text[end:], end+len(line)
			}
		}
	}
	return text
}

// CompleteMarkers returns a Go file whose RBAC markers are complete.
func CompleteMarkers(text string) string {
	const before = "resources="
	return regexp.MustCompile(`(?m)^// \+kubebuilder:rbac:groups=groups\.tidb\.dev,`+before+`[^,]*`).ReplaceAllStringFunc(text, func(marker string) string {
		head, list, _ := strings.Cut(marker, before)
		return head + before + strings.Join(completeList(strings.Split(list, ";")), ";")
	})
}

// CRDs returns the kustomization of all CRDs.
func CRDs() (string, error) {
	return fillTemplate(v1alpha1.Kinds(), `# All kinds. They are installed together: a kind whose operator is not installed simply has
# no status. Made by make generate.
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
{{- range .}}
- groups.tidb.dev_{{.}}s.yaml
{{- end}}
labels:
- pairs:
    app.kubernetes.io/part-of: tidb-groups
`)
}

// RoleBindings returns the bindings of all operators in a namespace.
func RoleBindings() (string, error) {
	return fillTemplate(v1alpha1.Operators(), `{{range $n, $name := .}}{{if $n}}---
{{else}}# Made by make generate.
{{end}}apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: tidb-groups-{{$name}}-operator
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: tidb-groups-{{$name}}-operator
subjects:
- {kind: ServiceAccount, name: {{$name}}-operator, namespace: tidb-groups-system}
{{end}}`)
}

// fillTemplate fills names, in small letters and sorted, into a template.
func fillTemplate(words []string, text string) (string, error) {
	var names []string
	for _, word := range words {
		names = append(names, strings.ToLower(word))
	}
	slices.Sort(names)
	t, err := template.New("").Parse(text)
	if err != nil {
		return "", fmt.Errorf("parse template: %w", err)
	}
	var out strings.Builder
	if err := t.Execute(&out, names); err != nil {
		return "", fmt.Errorf("fill template: %w", err)
	}
	return out.String(), nil
}

// ArgoCD returns Argo CD's settings with the check of an object's health, once for each kind.
func ArgoCD(script string) string {
	var b strings.Builder
	b.WriteString(`# Health checks of tidb-groups for Argo CD. Merge it into Argo CD's own settings:
#   kubectl -n argocd patch configmap argocd-cm --patch-file deploy/argocd/argocd-cm.yaml
# Made by make generate from health.lua.
apiVersion: v1
kind: ConfigMap
metadata:
  name: argocd-cm
data:
`)
	for _, kind := range v1alpha1.Kinds() {
		fmt.Fprintf(&b, "  resource.customizations.health.%s_%s: |\n", v1alpha1.GroupName, kind)
		for line := range strings.Lines(script) {
			b.WriteString(strings.TrimRight("    "+line, " "))
		}
	}
	return b.String()
}

// MakeConditionsAtomic returns a CRD in which each condition has one owner, who writes it as a whole:
// the API server then keeps no account of its fields, which is longer than they are. The type
// of a condition is not ours, so no marker can say it.
func MakeConditionsAtomic(text string) string {
	const keys = "x-kubernetes-list-map-keys:\n                - type\n"
	return regexp.MustCompile(`( {18})type: object\n((?: {16}[a-zA-Z]+: .*\n)+ {16}`+keys+`)`).ReplaceAllString(text, "${1}type: object\n${1}x-kubernetes-map-type: atomic\n${2}")
}

// WriteAll completes every list below the root of the repository.
func WriteAll(root string) error {
	health, err := os.ReadFile(filepath.Join(root, "deploy/argocd/health.lua")) //nolint:gosec // a file of the repository
	if err != nil {
		return fmt.Errorf("read check: %w", err)
	}
	argocd := func() (string, error) { return ArgoCD(string(health)), nil }
	for path, make := range map[string]func() (string, error){"deploy/crds/kustomization.yaml": CRDs, "deploy/bases/namespace/role_bindings.yaml": RoleBindings, "deploy/argocd/argocd-cm.yaml": argocd} {
		text, err := make()
		if err == nil {
			err = os.WriteFile(filepath.Join(root, path), []byte(text), 0o644) //nolint:gosec // a file of the repository
		}
		if err != nil {
			return fmt.Errorf("write %s: %w", path, err)
		}
	}
	for pattern, change := range map[string]func(string) string{
		"deploy/components/*/*.yaml":                          CompleteManifest,
		"deploy/bases/access/*.yaml":                          CompleteManifest,
		"deploy/overlays/default/kustomization.yaml":          CompleteLines,
		"deploy/overlays/shards/operators/kustomization.yaml": CompleteLines,
		"deploy/components/networkpolicy/databases.yaml":      CompleteLines,
		"deploy/crds/groups*.yaml":                            MakeConditionsAtomic,
		"operators/*/controller/*.go":                         CompleteMarkers,
		"shared/reconciler/rbac.go":                           CompleteMarkers,
	} {
		paths, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return fmt.Errorf("find files: %w", err)
		}
		for _, path := range paths {
			if err := rewriteFile(path, change); err != nil {
				return err
			}
		}
	}
	return nil
}

// rewriteFile changes a file if it is to be different.
func rewriteFile(path string, change func(string) string) error {
	text, err := os.ReadFile(path) //nolint:gosec // a file of the repository
	if err != nil {
		return fmt.Errorf("read list: %w", err)
	}
	after := change(string(text))
	if after == string(text) {
		return nil
	}
	if err := os.WriteFile(path, []byte(after), 0o644); err != nil { //nolint:gosec // a file of the repository
		return fmt.Errorf("write list: %w", err)
	}
	return nil
}
