package campaign

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/e2e/objects"
)

func key(text string) (out objects.Key) {
	if err := out.UnmarshalText([]byte(text)); err != nil {
		panic(err)
	}
	return out
}

func TestEveryFieldOfEveryKindIsMutated(t *testing.T) {
	schemas, err := specSchemas(crds)
	require.NoError(t, err)
	require.Len(t, schemas, len(v1alpha1.Kinds()))
	for kind, s := range schemas {
		fields, mutated, names := 0, map[string]bool{}, map[string]bool{}
		s.each(nil, func([]string, *schema) { fields++ })
		for _, m := range listMutations(kind, s) {
			mutated[encoded(m.path)] = true
			assert.False(t, names[m.String()], "two mutations are called %s", m)
			names[m.String()] = true
			_, err := m.apply(map[string]any{})
			assert.NoError(t, err, "it can be set where nothing is")
		}
		assert.Len(t, mutated, fields, kind)
	}
}

func encoded(path []string) string {
	text, err := encodeJSON(path)
	if err != nil {
		panic(err)
	}
	return text
}

func TestAMutationChangesOneFieldAndNothingElse(t *testing.T) {
	schemas, err := specSchemas(crds)
	require.NoError(t, err)
	type m = map[string]any
	spec := m{"version": "v8.5.7", "volumes": []any{m{"name": "data", "storage": "1Gi"}}}
	for fault, want := range map[string]m{
		"mutate:PDGroup/paused/valid-1":               {"version": "v8.5.7", "paused": true, "volumes": []any{m{"name": "data", "storage": "1Gi"}}},
		"mutate:PDGroup/version/unset-1":              {"volumes": []any{m{"name": "data", "storage": "1Gi"}}},
		"mutate:PDGroup/volumes[0].storage/odd-1":     {"version": "v8.5.7", "volumes": []any{m{"name": "data", "storage": "2Gi"}}},
		"mutate:PDGroup/volumes[0]/unset-1":           {"version": "v8.5.7", "volumes": []any{}},
		"mutate:PDGroup/replicas/invalid-1":           {"version": "v8.5.7", "replicas": int64(-1), "volumes": []any{m{"name": "data", "storage": "1Gi"}}},
		"mutate:PDGroup/env[0].value/odd-1":           {"version": "v8.5.7", "env": []any{m{"name": "a", "value": "2Gi"}}, "volumes": []any{m{"name": "data", "storage": "1Gi"}}},
		"mutate:PDGroup/resources.limits.key/valid-1": {"version": "v8.5.7", "resources": m{"limits": m{"key": "500m"}}, "volumes": []any{m{"name": "data", "storage": "1Gi"}}},
	} {
		mutation, err := findMutation(fault, schemas)
		require.NoError(t, err)
		got, err := mutation.apply(spec)
		require.NoError(t, err)
		assert.Equal(t, want, got, fault)
	}
	assert.Equal(t, "1Gi", spec["volumes"].([]any)[0].(m)["storage"], "the spec itself is left alone")
	_, err = findMutation("mutate:PDGroup/nonsense/valid-1", schemas)
	assert.Error(t, err)
}

func TestAMutationKnowsWhatItAsksFor(t *testing.T) {
	schemas, err := specSchemas(crds)
	require.NoError(t, err)
	type m = map[string]any
	spec := m{"pd": m{"volumes": []any{m{"name": "pd", "storage": "1Gi"}}}, "tikv": []any{m{"name": "", "volumes": []any{m{"name": "tikv", "storage": "3Gi"}}}}}
	for fault, want := range map[string]struct{ stops, grows bool }{
		"mutate:TidbCluster/pd.suspended/valid-1":             {stops: true},
		"mutate:TidbCluster/pd.suspended/valid-2":             {},
		"mutate:TidbCluster/suspended/valid-1":                {stops: true},
		"mutate:TidbCluster/tikv/unset-1":                     {stops: true},
		"mutate:TidbCluster/tikv[0]/unset-1":                  {stops: true},
		"mutate:TidbCluster/tikv[0].name/valid-1":             {stops: true},
		"mutate:TidbCluster/tikv[0].env[0].name/valid-1":      {},
		"mutate:TidbCluster/pd.volumes[0].storage/odd-1":      {grows: true},
		"mutate:TidbCluster/tikv[0].volumes[0].storage/odd-1": {},
		"mutate:TidbCluster/pd.volumes[0].storage/unset-1":    {},
	} {
		mutation, err := findMutation(fault, schemas)
		require.NoError(t, err)
		assert.Equal(t, want.stops, mutation.stopsAll(), fault)
		assert.Equal(t, want.grows, mutation.growsVolumes(spec), fault)
	}
}

func TestAHalfRevertLeavesEmptyMaps(t *testing.T) {
	schemas, err := specSchemas(crds)
	require.NoError(t, err)
	type m = map[string]any
	for fault, want := range map[string]m{
		"mutate:TidbCluster/disruption.paused/valid-1":            {"disruption": m{}},
		"mutate:TidbCluster/tikv[0].resources.limits.key/valid-1": {"tikv": []any{m{"name": "kv", "resources": m{"limits": m{}}}}},
		"mutate:TidbCluster/tikv[0].resources.limits.key/odd-1":   nil,
		"mutate:TidbCluster/version/valid-1":                      nil,
		"mutate:TidbCluster/tikv[0].nodeSelector/valid-1":         nil,
	} {
		mutation, err := findMutation(fault, schemas)
		require.NoError(t, err)
		before := m{}
		if mutation.path[0] == "tikv" {
			before = m{"tikv": []any{m{"name": "kv"}}}
		}
		after, err := mutation.apply(before)
		require.NoError(t, err)
		got, is := mutation.halfway(before, after)
		assert.Equal(t, want != nil, is, fault)
		assert.Equal(t, want, got, fault)
	}
}
