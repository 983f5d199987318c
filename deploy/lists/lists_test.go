package lists_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/deploy/lists"
)

// all are the names of all groups in a form, and more, sorted.
func all(form func(v1alpha1.ComponentInfo) string, more ...string) []string {
	for _, c := range v1alpha1.ComponentTable() {
		more = append(more, form(c))
	}
	slices.Sort(more)
	return more
}

func resource(c v1alpha1.ComponentInfo) string { return c.Resource }

func TestAListThatNamesTheFirstGroupsNamesAll(t *testing.T) {
	list := func(form func(v1alpha1.ComponentInfo) string, more ...string) string {
		return "[" + strings.Join(all(form, more...), ", ") + "]"
	}
	for name, c := range map[string]struct{ text, want string }{
		"resources":        {"resources: [instances, pdgroups, tidbgroups, tikvgroups]", "resources: " + list(resource, "instances")},
		"scale":            {"- [pdgroups/scale, tidbgroups/scale, tikvgroups/scale]", "- " + list(func(c v1alpha1.ComponentInfo) string { return c.Resource + "/scale" })},
		"quoted names":     {"x in ['instance', 'pdgroup', 'tikvgroup', 'tidbgroup'] && y[0]", "x in " + list(func(c v1alpha1.ComponentInfo) string { return "'" + c.Component + "group'" }, "'instance'") + " && y[0]"},
		"names of pods":    {"[tikvgroup-operator, pdgroup-operator, tidbgroup-operator]", list(func(c v1alpha1.ComponentInfo) string { return c.Component + "group-operator" })},
		"a list of others": {"[pdgroups, tidbclusters]", "[pdgroups, tidbclusters]"},
		"no list":          {"pdgroups, tikvgroups, tidbgroups", "pdgroups, tikvgroups, tidbgroups"},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, lists.CompleteManifest(c.text))
			assert.Equal(t, c.want, lists.CompleteManifest(c.want), "and is left alone then")
		})
	}
}

func TestAListOfLinesThatNamesTheFirstGroupsNamesAll(t *testing.T) {
	bases, ports := "", ""
	for _, c := range v1alpha1.ComponentTable()[3:] {
		bases += "- ../../bases/" + c.Component + "group\n"
		if c.Kind != v1alpha1.KindTiCDCGroup {
			ports += fmt.Sprintf("\n    - port: %d # %s", c.StatusPort, strings.TrimSuffix(c.Kind, "Group"))
		}
	}
	const (
		based  = "- ../../bases/pdgroup\n- ../../bases/tidbgroup\n- ../../bases/tikvgroup\n"
		ported = "    - port: 2379 # PD\n    - port: 20180 # TiKV\n    - port: 8301 # TiCDC\n    - port: 10080 # TiDB"
	)
	for name, c := range map[string]struct{ text, want string }{
		"bases":                     {based + "components:\n- x\n", based + bases + "components:\n- x\n"},
		"ports, in their own order": {ported, ported + ports},
		"two components alone":      {"- ../../bases/pdgroup\n- ../../bases/tikvgroup\n", "- ../../bases/pdgroup\n- ../../bases/tikvgroup\n"},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, lists.CompleteLines(c.text))
			assert.Equal(t, c.want, lists.CompleteLines(c.want), "and is left alone then")
		})
	}
}

func TestAMarkerThatNamesTheFirstGroupsNamesAll(t *testing.T) {
	const marker = "// +kubebuilder:rbac:groups=groups.tidb.dev,resources="
	assert.Equal(t, marker+strings.Join(all(resource), ";")+",verbs=get\nx", lists.CompleteMarkers(marker+"pdgroups;tikvgroups;tidbgroups,verbs=get\nx"))
	assert.Equal(t, marker+"pdgroups;,verbs=get", lists.CompleteMarkers(marker+"pdgroups;,verbs=get"))
}

func TestEachConditionIsWrittenAsAWhole(t *testing.T) {
	const (
		before = "                conditions:\n                items:\n                  required:\n                  - type\n"
		whole  = "                  x-kubernetes-map-type: atomic\n"
		after  = "                maxItems: 32\n                type: array\n                x-kubernetes-list-map-keys:\n                - type\n                x-kubernetes-list-type: map\n"
	)
	want := before + "                  type: object\n" + whole + after
	assert.Equal(t, want, lists.MakeConditionsAtomic(before+"                  type: object\n"+after))
	assert.Equal(t, want, lists.MakeConditionsAtomic(want), "and is left alone then")
	other := before + "                  type: object\n" + strings.Replace(after, "- type", "- name", 1)
	assert.Equal(t, other, lists.MakeConditionsAtomic(other), "a list of something else")
}

func TestEveryKindIsInstalledAndEveryOperatorBound(t *testing.T) {
	crds, err := lists.CRDs()
	require.NoError(t, err)
	bindings, err := lists.RoleBindings()
	require.NoError(t, err)
	for _, name := range all(func(c v1alpha1.ComponentInfo) string { return c.Component + "group" }, "backup", "instance", "tidbcluster") {
		assert.Contains(t, crds, "\n- groups.tidb.dev_"+name+"s.yaml\n")
		assert.Contains(t, bindings, "- {kind: ServiceAccount, name: "+name+"-operator, namespace: tidb-groups-system}\n")
	}
	for _, name := range []string{"backupschedule", "logbackup", "restore"} {
		assert.Contains(t, crds, "\n- groups.tidb.dev_"+name+"s.yaml\n")
		assert.NotContains(t, bindings, name+"-operator", "the backup operator looks after it")
	}
}
