package rollout

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/revision"
	"github.com/tidb-groups/tidb-groups/shared/testkit/instancetest"
)

// GRP-10: of the revisions that no member runs the oldest go beyond the limit, with the
// ConfigMaps that nothing else needs, and never one that a pod runs, or was made from.
func TestGRP10OldRevisionsWithoutMembersArePruned(t *testing.T) {
	const all = 8
	record := func(n int) revision.Record {
		return revision.Record{Inputs: fmt.Sprint(n), Files: map[string]string{"tikv.toml": fmt.Sprintf("a = %d\n", n)}}
	}
	hash := func(n int) string {
		out, err := record(n).Hash()
		require.NoError(t, err)
		return out
	}
	file := func(n int) string {
		out, err := ConfigMapName("kv", record(n).Files)
		require.NoError(t, err)
		return out
	}
	for name, c := range map[string]struct {
		limit  *int32
		change func(*observation.Snapshot)
		gone   []int // revisions, with their ConfigMaps if these are there
	}{
		"ten are kept by default":           {nil, nil, nil},
		"as many as there are":              {ptr.To[int32](7), nil, nil},
		"the oldest goes":                   {ptr.To[int32](6), nil, []int{0}},
		"two are kept, the youngest":        {ptr.To[int32](2), nil, []int{0, 1, 2, 3, 4}},
		"none is kept but the wanted one":   {ptr.To[int32](0), nil, []int{0, 1, 2, 3, 4, 5, 6}},
		"one that a member is to run stays": {ptr.To[int32](0), func(s *observation.Snapshot) { s.Instances[0].Spec.Revision = hash(1) }, []int{0, 2, 3, 4, 5, 6}},
		"one that a member runs stays":      {ptr.To[int32](0), func(s *observation.Snapshot) { s.Instances[0].Status.Revision = hash(2) }, []int{0, 1, 3, 4, 5, 6}},
		"one whose files a pod has mounted": {ptr.To[int32](0), func(s *observation.Snapshot) { s.Instances[0].Status.MadeFrom = hash(3) }, []int{0, 1, 2, 4, 5, 6}},
		"and they are not counted":          {ptr.To[int32](1), func(s *observation.Snapshot) { s.Instances[0].Status.Revision = hash(6) }, []int{0, 1, 2, 3, 4}},
		"a ConfigMap that is gone already":  {ptr.To[int32](6), func(s *observation.Snapshot) { s.ConfigMaps = nil }, []int{0}},
		"what cannot be read keeps all": {ptr.To[int32](0), func(s *observation.Snapshot) {
			s.Revisions[4].Data.Raw = []byte("{")
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := &v1alpha1.TiKVGroup{}
			g.Namespace, g.Name = "ns", "kv"
			g.Spec.RevisionHistoryLimit = c.limit
			s := observation.Snapshot{Instances: []*v1alpha1.Instance{instancetest.Instance(0, "a")}, ConfigMaps: map[string]bool{}}
			s.Instances[0].Spec.Revision = ""
			var target revision.Target
			for n := range all {
				target = revision.Target{Record: record(n), Hash: hash(n), Number: int64(n + 1)}
				object, err := target.Object("kv", "ns", nil)
				require.NoError(t, err)
				s.Revisions = append([]appsv1.ControllerRevision{*object}, s.Revisions...)
				s.ConfigMaps[file(n)] = true
			}
			if c.change != nil {
				c.change(&s)
			}
			var want, got []string
			for _, n := range c.gone {
				object, err := revision.Target{Record: record(n), Hash: hash(n), Number: int64(n + 1)}.Object("kv", "ns", nil)
				require.NoError(t, err)
				want = append(want, object.Name)
				if s.ConfigMaps[file(n)] {
					want = append(want, "ConfigMap "+file(n))
				}
			}
			for _, object := range Prune(g, s, target) {
				name := object.GetName()
				if _, ok := object.(*corev1.ConfigMap); ok {
					assert.Equal(t, "ns", object.GetNamespace())
					name = "ConfigMap " + name
				}
				got = append(got, name)
			}
			assert.ElementsMatch(t, want, got)
		})
	}
}

// Two revisions may have the same files.
func TestGRP10AConfigMapThatAnotherRevisionNeedsStays(t *testing.T) {
	g := &v1alpha1.TiKVGroup{}
	g.Namespace, g.Name, g.Spec.RevisionHistoryLimit = "ns", "kv", ptr.To[int32](0)
	files := map[string]string{"tikv.toml": "a = 1\n"}
	name, err := ConfigMapName("kv", files)
	require.NoError(t, err)
	s := observation.Snapshot{ConfigMaps: map[string]bool{name: true}}
	var target revision.Target
	for n, image := range []string{"tikv:1", "tikv:2"} {
		record := revision.Record{Inputs: image, Files: files}
		record.Template.Spec.Containers = []corev1.Container{{Name: "tikv", Image: image}}
		hash, err := record.Hash()
		require.NoError(t, err)
		target = revision.Target{Record: record, Hash: hash, Number: int64(n + 1)}
		object, err := target.Object("kv", "ns", nil)
		require.NoError(t, err)
		s.Revisions = append(s.Revisions, *object)
	}
	pruned := Prune(g, s, target)
	require.Len(t, pruned, 1)
	assert.Equal(t, s.Revisions[0].Name, pruned[0].GetName())
}
