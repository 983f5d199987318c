package clusterwide_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/e2e/rig"
	"github.com/tidb-groups/tidb-groups/e2e/rig/sample"
	"github.com/tidb-groups/tidb-groups/e2e/scenario"
)

// nine is a cluster of three members each of PD, TiKV and TiDB.
const nine = `
metadata: {name: basic}
spec:
  version: v8.5.7
  pd: {replicas: 3, volumes: [{name: data, storage: 1Gi}]}
  tikv: [{replicas: 3, volumes: [{name: data, storage: 10Gi}]}]
  tidb: [{replicas: 3}]
`

// mostEvents is how many Events of the suite a roll of nine members may make.
const mostEvents = 40

// U 10: what a roll tells can be read: few Events, none of them twice, its beginning and
// its end for each group.
func TestARollOfNineMembersMakesFewEventsAndNoneTwice(t *testing.T) {
	r := rig.New(t, plane, rig.Options{ClusterWide: true, Database: scenario.Database{Speed: 20, Regions: 30}})
	r.Start(rig.Operators()...)
	cluster, whole := sample.Parse[v1alpha1.TidbCluster](t, nine), rig.Key{Kind: v1alpha1.KindTidbCluster, Name: "basic"}
	r.Apply(cluster)
	r.AwaitConverged(whole)
	told := func() map[string]int {
		var list eventsv1.EventList
		require.NoError(t, r.User().List(t.Context(), &list, client.InNamespace(r.Namespace())))
		out := map[string]int{}
		for _, e := range list.Items {
			if !strings.HasPrefix(e.Regarding.APIVersion, v1alpha1.GroupName+"/") {
				continue // Kubernetes' own
			}
			times := 1
			if e.Series != nil {
				times = int(e.Series.Count)
			}
			out[fmt.Sprintf("%s %s: %s %s: %s", e.Regarding.Kind, e.Regarding.Name, e.Type, e.Reason, e.Note)] += times
		}
		return out
	}
	before := told()
	groups := []string{"PDGroup basic-pd", "TiKVGroup basic-tikv", "TiDBGroup basic-tidb"}

	cluster = sample.Parse[v1alpha1.TidbCluster](t, nine)
	cluster.Spec.Version = "v8.5.8"
	r.Apply(cluster)
	r.Await(rig.Timeout, "everybody runs the new version", func(o rig.Objects) error {
		version, _, _ := unstructured.NestedString(o.Get(v1alpha1.KindTidbCluster, "basic").Object, "status", "version")
		if version != cluster.Spec.Version {
			return fmt.Errorf("status.version is %s", version)
		}
		return nil
	})
	r.AwaitConverged(whole)

	var lines []string
	total := 0
	require.Eventually(t, func() bool { // Events are written beside what they tell of
		lines, total = nil, 0
		for line, times := range told() {
			if n := times - before[line]; n > 0 {
				total += n
				lines = append(lines, fmt.Sprintf("%d× %s", n, line))
			}
		}
		return strings.Count(strings.Join(lines, "\n"), " RolloutEnded: ") == len(groups)
	}, rig.Timeout, 50*time.Millisecond)
	all := strings.Join(lines, "\n")
	t.Logf("%d Events:\n%s", total, all)
	assert.LessOrEqual(t, total, mostEvents, all)
	assert.NotContains(t, all, "Updated Instance")
	for _, line := range lines {
		switch {
		case strings.Contains(line, "TidbCluster basic: Normal Updated: "): // it may meet a newer version of a group
		case strings.Contains(line, " DisruptionBegun: ") && strings.Contains(all, " comes first and is not UpToDate"):
			// A group may take the Lease before it sees that PD has not rolled yet, and gives it back.
		default:
			assert.True(t, strings.HasPrefix(line, "1× "), "told more than once: %s", line)
		}
	}
	for _, group := range groups {
		assert.Contains(t, all, group+": Normal RolloutBegun: 3 Instances will be updated to revision ")
		assert.Contains(t, all, group+": Normal RolloutEnded: every Instance is at revision ")
	}
}
