package bench

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/e2e/apirequest"
)

// User edits first: a user edits one cluster while another one starts.
func TestEditsAreMeasuredUnderLoad(t *testing.T) {
	found, err := MeasureEdits(t.Context(), plane, Case{Clusters: 1, Edits: 3})
	require.NoError(t, err)
	for _, l := range found.loads() {
		for _, all := range [][]time.Duration{l.found.Cluster, l.found.Group, l.found.Pod, l.found.Acted} {
			assert.NotEmpty(t, all, l.name)
			assert.Len(t, all, len(l.found.Pod), "each edit comes to a pod")
		}
	}
	assert.Len(t, found.Restarted.Pod, editRestarts)
	assert.LessOrEqual(t, len(found.Starting.Pod), 3)
}

// What has another value, is a status or is not the next object on the way is no reaction.
func TestOnlyTheFirstWriteWithTheEditIsAReaction(t *testing.T) {
	r, now := newReactions(), time.Now()
	group := apirequest.Request{Verb: apirequest.Patch, Resource: "tidbgroups"}
	r.see("tidbcluster", group, []byte("edit-1-of"), now)
	r.await("edit-1-of")
	r.see("tidbcluster", group, []byte("edit-11-of"), now)
	r.see("tidbgroup", group, []byte("edit-1-of"), now)
	r.see("tidbgroup", apirequest.Request{Verb: apirequest.Patch, Resource: "instances", Subresource: "status"}, []byte("edit-1-of"), now)
	assert.Empty(t, r.told)
	r.see("tidbcluster", group, []byte("label: edit-1-of"), now)
	r.see("tidbcluster", group, []byte("label: edit-1-of"), now)
	assert.Len(t, r.told, 1)
	assert.Equal(t, "tidbcluster", (<-r.told).operator)
}

func TestTimesOfEditsAreReported(t *testing.T) {
	var all []time.Duration
	for n := range 200 {
		all = append(all, time.Duration(200-n)*time.Millisecond)
	}
	assert.Equal(t, "100 / 198 / 200", formatQuantiles(all))
	assert.Equal(t, "–", formatQuantiles(nil))
	one := []time.Duration{time.Second}
	e := Edits{Clusters: 20, Starting: Reactions{Cluster: all, Group: all, Pod: all, Acted: one}, Restarted: Reactions{Cluster: one, Group: one, Pod: one}}
	assert.Equal(t, "200 edits beside 20 clusters while they start, ms p50 / p99 / most: acted on 1000 / 1000 / 1000, in the group 100 / 198 / 200, in its Instances 100 / 198 / 200, in a pod 100 / 198 / 200\n"+
		"1 edits beside 20 clusters while the operators were restarted, ms p50 / p99 / most: acted on –, in the group 1000 / 1000 / 1000, in its Instances 1000 / 1000 / 1000, in a pod 1000 / 1000 / 1000", e.String())
	assert.Contains(t, Tables([]Run{{Commit: "one", What: "w", Machine: "m", Edits: []Edits{e}}}), "| one | w | 20 | they start | 200 | 1000 / 1000 / 1000 | 100 / 198 / 200 | 100 / 198 / 200 | 100 / 198 / 200 |\n")
}
