package docs

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// presetInWords finds the default at the end of a description, of a field that has none
// in its schema.
var presetInWords = regexp.MustCompile(`^(.*) (?:Default|Unset): ((?:[^.]|\.[^ ])*)\.$`)

// row is one field of a kind.
type row struct{ path, kind, preset, says string }

// schema is what is read of a CRD's schema.
type schema struct {
	Type          string            `json:"type"`
	Description   string            `json:"description"`
	Properties    map[string]schema `json:"properties"`
	Items         *schema           `json:"items"`
	Additional    any               `json:"additionalProperties"`
	Required      []string          `json:"required"`
	Default       any               `json:"default"`
	Enum          []any             `json:"enum"`
	Pattern       string            `json:"pattern"`
	Minimum       *int64            `json:"minimum"`
	Maximum       *int64            `json:"maximum"`
	MaxItems      int64             `json:"maxItems"`
	MaxProperties int64             `json:"maxProperties"`
	MaxLength     int64             `json:"maxLength"`
}

// API returns docs/reference/api.md from the CRDs in a directory.
func API(dir string) (string, error) {
	specs, states := map[string][]row{}, map[string][]row{}
	for _, kind := range v1alpha1.Kinds() {
		text, err := os.ReadFile(filepath.Join(dir, "groups.tidb.dev_"+strings.ToLower(kind)+"s.yaml")) //nolint:gosec // a file of the repository
		if err != nil {
			return "", fmt.Errorf("read CRD: %w", err)
		}
		var crd struct {
			Spec struct {
				Versions []struct {
					Schema struct {
						OpenAPIV3Schema schema `json:"openAPIV3Schema"`
					} `json:"schema"`
				} `json:"versions"`
			} `json:"spec"`
		}
		if err := yaml.Unmarshal(text, &crd); err != nil {
			return "", fmt.Errorf("parse CRD of %s: %w", kind, err)
		}
		root := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties
		specs[kind] = listFields("", root["spec"])
		if kind == v1alpha1.KindTidbCluster {
			specs[kind] = slices.DeleteFunc(specs[kind], isEntryField)
		}
		states[kind] = listFields("", root["status"])
	}
	var b strings.Builder
	b.WriteString(`<!-- Written by "make generate" from deploy/crds. Do not edit. -->

# API: groups.tidb.dev/v1alpha1

Every field, with its type, default and limits. ` + "`kubectl explain`" + ` shows the same texts, for example ` + "`kubectl explain tikvgroup.spec.failover`" + `.
Paths stand below ` + "`spec`" + ` or ` + "`status`" + `. The page of each kind says how the fields work together.
`)
	groups := v1alpha1.GroupKinds(func(v1alpha1.ComponentInfo) bool { return true })
	stores := v1alpha1.GroupKinds(func(c v1alpha1.ComponentInfo) bool { return c.Stores })
	services := v1alpha1.GroupKinds(func(c v1alpha1.ComponentInfo) bool {
		return slices.ContainsFunc(specs[c.Kind], func(r row) bool { return r.path == "service.type" })
	})
	of := specs[v1alpha1.KindTidbCluster] // of the groups below it says nothing else
	specs[v1alpha1.KindTidbCluster] = slices.DeleteFunc(of, func(r row) bool {
		return strings.Contains(r.path, ".") && slices.Contains(commonRows(specs, groups), r)
	})
	for _, s := range []struct {
		title, more string
		kinds       []string
	}{
		{"Fields of every group", ", and of their entries in a TidbCluster", groups},
		{"Fields of stores", "", stores},
		{"Fields of the Service", "", services},
	} {
		spec, state := commonRows(specs, s.kinds), commonRows(states, s.kinds)
		last := len(s.kinds) - 1
		fmt.Fprintf(&b, "\n## %s\n\nOf %s and %s%s.\n", s.title, strings.Join(s.kinds[:last], ", "), s.kinds[last], s.more)
		writeFields(&b, "spec", spec)
		writeFields(&b, "status", state)
		for _, kind := range s.kinds {
			specs[kind], states[kind] = subtractRows(specs[kind], spec), subtractRows(states[kind], state)
		}
	}
	for _, kind := range v1alpha1.Kinds() {
		fmt.Fprintf(&b, "\n## %s\n", kind)
		link := ""
		switch {
		case slices.Contains(stores, kind):
			link = "[stores](#fields-of-stores)"
		case slices.Contains(services, kind):
			link = "[service](#fields-of-the-service)"
		}
		if link != "" {
			fmt.Fprintf(&b, "\nBeside the fields of [every group](#fields-of-every-group) and %s:\n", link)
		}
		writeFields(&b, "spec", specs[kind])
		writeFields(&b, "status", states[kind])
	}
	return b.String(), nil
}

// isEntryField says that a field lies within an entry of a TidbCluster, which has the
// fields of the group that it becomes.
func isEntryField(r row) bool {
	entry, rest, nested := strings.Cut(r.path, ".")
	return nested && rest != "name" && slices.ContainsFunc(v1alpha1.ComponentTable(), func(c v1alpha1.ComponentInfo) bool {
		return c.Component == strings.TrimSuffix(entry, "[]")
	})
}

// commonRows returns the rows that all kinds have, in the same words.
func commonRows(of map[string][]row, kinds []string) []row {
	return slices.DeleteFunc(slices.Clone(of[kinds[0]]), func(r row) bool {
		return slices.ContainsFunc(kinds, func(kind string) bool { return !slices.Contains(of[kind], r) })
	})
}

func subtractRows(all, some []row) []row {
	return slices.DeleteFunc(slices.Clone(all), func(r row) bool { return slices.Contains(some, r) })
}

// listFields lists the fields below a schema, by name.
func listFields(path string, s schema) []row {
	var out []row
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		field := s.Properties[name]
		at := path + name
		if field.Items != nil {
			at += "[]"
		}
		preset := ""
		if _, nested := field.Default.(map[string]any); !nested && field.Default != nil && field.Default != "" {
			preset = fmt.Sprintf("`%v`", field.Default)
		}
		says := strings.Join(strings.Fields(field.Description), " ")
		if m := presetInWords.FindStringSubmatch(says); m != nil && preset == "" {
			says, preset = m[1], m[2]
		}
		kind, nested := typeOf(field, slices.Contains(s.Required, name)), field
		if field.Items != nil {
			nested = *field.Items
		}
		below := listFields(at+".", nested)
		switch {
		case at == "conditions[]": // metav1.Condition
			below = nil
		case len(below) > 0 && !slices.ContainsFunc(below, func(r row) bool { return !slices.Contains(obviousDescriptions(), r.says) }):
			kind += ": " + strings.Join(slices.Sorted(maps.Keys(nested.Properties)), ", ")
			below = nil
		}
		out = append(append(out, row{at, kind, preset, says}), below...)
	}
	return out
}

// obviousDescriptions are descriptions that say no more than the field's name.
func obviousDescriptions() []string {
	return []string{"Name of the object.", "Key in the object's data.", "Name of the Instance.", "UID of the Instance.", "UID of the Instance: one that is made later under the same name is another."}
}

// typeOf says in a few words what a field may be.
func typeOf(f schema, required bool) string {
	words := []string{f.Type}
	switch {
	case len(f.Enum) > 0:
		var values []string
		for _, v := range f.Enum {
			values = append(values, fmt.Sprintf("`%v`", v))
		}
		words[0] = strings.Join(values, ", ")
		if at := strings.LastIndex(words[0], ", "); at >= 0 {
			words[0] = words[0][:at] + " or" + words[0][at+1:]
		}
	case f.Items != nil:
		words[0] = "list"
	case f.Additional != nil:
		words[0] = "map"
	case strings.Contains(f.Pattern, "(ms|s|m|h)"):
		words[0], f.MaxLength = "duration", 0
	}
	if f.Minimum != nil && f.Maximum != nil {
		words = append(words, fmt.Sprintf("%d to %d", *f.Minimum, *f.Maximum))
	} else if f.Minimum != nil {
		words = append(words, fmt.Sprintf("%d or more", *f.Minimum))
	}
	if most := max(f.MaxItems, f.MaxProperties); most > 0 {
		words = append(words, fmt.Sprintf("at most %d", most))
	}
	if f.MaxLength > 0 && len(f.Enum) == 0 {
		words = append(words, fmt.Sprintf("at most %d characters", f.MaxLength))
	}
	if required {
		words = append(words, "required")
	}
	return strings.Join(words, ", ")
}

func writeFields(b *strings.Builder, part string, rows []row) {
	if len(rows) == 0 {
		return
	}
	fmt.Fprintf(b, "\n| %s | type | default | meaning |\n|---|---|---|---|\n", part)
	for _, r := range rows {
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", r.path, r.kind, r.preset, strings.NewReplacer("|", `\|`, "<", "&lt;", "[]", "&#91;]").Replace(r.says))
	}
}
