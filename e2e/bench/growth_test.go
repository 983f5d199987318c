package bench

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestNewClustersAreMeasuredBesideExistingOnes(t *testing.T) {
	var told []Wave
	found, err := MeasureGrowth(t.Context(), plane, Case{Clusters: 2, Edits: 2}, 1, func(w Wave) {
		assert.NotEmpty(t, w.Cost.Profile)
		w.Cost.Profile, w.Cost.Functions = nil, nil // they are not kept
		told = append(told, w)
	})
	require.NoError(t, err)
	require.Len(t, found.Waves, 2)
	assert.Equal(t, found.Waves, told)
	assert.Nil(t, found.Idle)
	require.NotNil(t, found.Edits)
	assert.Equal(t, 3, found.Edits.Clusters, "one more comes while a user edits")
	assert.NotEmpty(t, found.Edits.Starting.Pod)
	assert.Len(t, found.Edits.loads(), 1, "nothing is restarted")
	for at, w := range found.Waves {
		assert.Equal(t, at, w.There)
		assert.Equal(t, 1, w.Clusters)
		assert.GreaterOrEqual(t, w.Cost.Took, w.Took+afterwards, "what comes afterwards counts too")
		assert.Greater(t, w.Cost.Writes, 60, "a cluster was made")
		for _, name := range []string{apiserver, etcd, here} {
			assert.Positive(t, w.Memory[name], name)
		}
	}
}

func TestGrowthIsOnThePage(t *testing.T) {
	wave := Wave{There: 100, Clusters: 50, Took: 90 * time.Second, Cost: Cost{
		Writes: 7000, Reads: 5000, Reconciles: map[string]int{"pdgroup": 100}, Processor: map[string]time.Duration{"pdgroup": 5 * time.Second},
		ControlPlane: map[string]time.Duration{apiserver: 50 * time.Second},
	}, Memory: map[string]int64{apiserver: 2 << 30, etcd: 200 << 20, here: 1 << 30}}
	var out strings.Builder
	growthTable(&out, []Run{{Commit: "one", Machine: "m, 2 processors"}})
	assert.Empty(t, out.String())
	growthTable(&out, []Run{{Commit: "two", Machine: "m, 2 processors", Growth: []Growth{{Waves: []Wave{wave}, Idle: &Cost{Took: time.Minute, Writes: 1, Reads: 2}}}}})
	assert.Contains(t, out.String(), "| two | 100 | 50 | 90.0 | 140 | 100 | 2 | 100 | 1000 | 2048, 200, 1024 |\n")
	assert.Contains(t, out.String(), "| nothing to do for 1m0s | | 1 in all | 2 in all |")
}
