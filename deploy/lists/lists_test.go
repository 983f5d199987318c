package lists_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/deploy/lists"
)

func TestAListThatNamesTheFirstGroupsNamesAll(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"resources":        {"resources: [instances, pdgroups, tidbgroups, tikvgroups]", "resources: [instances, pdgroups, ticdcgroups, tidbgroups, tiflashgroups, tikvgroups, tiproxygroups]"},
		"scale":            {"- [pdgroups/scale, tidbgroups/scale, tikvgroups/scale]", "- [pdgroups/scale, ticdcgroups/scale, tidbgroups/scale, tiflashgroups/scale, tikvgroups/scale, tiproxygroups/scale]"},
		"quoted names":     {"x in ['instance', 'pdgroup', 'tikvgroup', 'tidbgroup'] && y[0]", "x in ['instance', 'pdgroup', 'ticdcgroup', 'tidbgroup', 'tiflashgroup', 'tikvgroup', 'tiproxygroup'] && y[0]"},
		"names of pods":    {"[tikvgroup-operator, pdgroup-operator, tidbgroup-operator]", "[pdgroup-operator, ticdcgroup-operator, tidbgroup-operator, tiflashgroup-operator, tikvgroup-operator, tiproxygroup-operator]"},
		"a list of others": {"[pdgroups, tidbclusters]", "[pdgroups, tidbclusters]"},
		"no list":          {"pdgroups, tikvgroups, tidbgroups", "pdgroups, tikvgroups, tidbgroups"},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, lists.Manifest(c.text))
			assert.Equal(t, c.want, lists.Manifest(c.want), "and is left alone then")
		})
	}
}

func TestAListOfLinesThatNamesTheFirstGroupsNamesAll(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"bases": {
			"- ../../bases/pdgroup\n- ../../bases/tidbgroup\n- ../../bases/tikvgroup\ncomponents:\n- x\n",
			"- ../../bases/pdgroup\n- ../../bases/tidbgroup\n- ../../bases/tikvgroup\n- ../../bases/tiflashgroup\n- ../../bases/tiproxygroup\n- ../../bases/ticdcgroup\ncomponents:\n- x\n",
		},
		"ports, in their own order": {
			"    - port: 2379 # PD\n    - port: 20180 # TiKV\n    - port: 8301 # TiCDC\n    - port: 10080 # TiDB",
			"    - port: 2379 # PD\n    - port: 20180 # TiKV\n    - port: 8301 # TiCDC\n    - port: 10080 # TiDB\n    - port: 20292 # TiFlash\n    - port: 3080 # TiProxy",
		},
		"two components alone": {"- ../../bases/pdgroup\n- ../../bases/tikvgroup\n", "- ../../bases/pdgroup\n- ../../bases/tikvgroup\n"},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, lists.Lines(c.text))
			assert.Equal(t, c.want, lists.Lines(c.want), "and is left alone then")
		})
	}
}

func TestAMarkerThatNamesTheFirstGroupsNamesAll(t *testing.T) {
	const marker = "// +kubebuilder:rbac:groups=groups.tidb.dev,resources=pdgroups;"
	assert.Equal(t, marker+"ticdcgroups;tidbgroups;tiflashgroups;tikvgroups;tiproxygroups,verbs=get\nx", lists.Markers(marker+"tikvgroups;tidbgroups,verbs=get\nx"))
	assert.Equal(t, marker+",verbs=get", lists.Markers(marker+",verbs=get"))
}

func TestEachConditionIsWrittenAsAWhole(t *testing.T) {
	const (
		before = "                conditions:\n                items:\n                  required:\n                  - type\n"
		whole  = "                  x-kubernetes-map-type: atomic\n"
		after  = "                maxItems: 32\n                type: array\n                x-kubernetes-list-map-keys:\n                - type\n                x-kubernetes-list-type: map\n"
	)
	want := before + "                  type: object\n" + whole + after
	assert.Equal(t, want, lists.Conditions(before+"                  type: object\n"+after))
	assert.Equal(t, want, lists.Conditions(want), "and is left alone then")
	other := before + "                  type: object\n" + strings.Replace(after, "- type", "- name", 1)
	assert.Equal(t, other, lists.Conditions(other), "a list of something else")
}

func TestEveryKindIsInstalledAndEveryOperatorBound(t *testing.T) {
	crds, err := lists.CRDs()
	require.NoError(t, err)
	bindings, err := lists.RoleBindings()
	require.NoError(t, err)
	for _, name := range []string{"instance", "pdgroup", "tidbcluster", "tidbgroup", "tiflashgroup", "tikvgroup", "tiproxygroup", "ticdcgroup", "backup"} {
		assert.Contains(t, crds, "\n- groups.tidb.dev_"+name+"s.yaml\n")
		assert.Contains(t, bindings, "- {kind: ServiceAccount, name: "+name+"-operator, namespace: tidb-groups-system}\n")
	}
	for _, name := range []string{"backupschedule", "logbackup", "restore"} {
		assert.Contains(t, crds, "\n- groups.tidb.dev_"+name+"s.yaml\n")
		assert.NotContains(t, bindings, name+"-operator", "the backup operator looks after it")
	}
}
