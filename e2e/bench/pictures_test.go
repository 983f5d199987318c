package bench

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/shared/testkit/binaries"
)

// The page and its pictures are made of the figures and of nothing else.
func TestThePageIsWhatTheRecordedFiguresSay(t *testing.T) {
	root, err := binaries.Root()
	require.NoError(t, err)
	docs := filepath.Join(root, "docs")
	again := t.TempDir()
	names := []string{"performance.md"}
	for _, name := range []string{figures, "performance.md"} {
		text, err := os.ReadFile(filepath.Join(docs, name))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(again, name), text, 0o600))
	}
	require.NoError(t, Draw(again))
	committed, err := filepath.Glob(filepath.Join(docs, folder, "performance-*.svg"))
	require.NoError(t, err)
	require.NotEmpty(t, committed)
	for _, file := range committed {
		names = append(names, filepath.Join(folder, filepath.Base(file)))
	}
	drawn, err := os.ReadDir(filepath.Join(again, folder))
	require.NoError(t, err)
	assert.Len(t, drawn, len(committed))
	for _, name := range names {
		want, err := os.ReadFile(filepath.Join(docs, name))
		require.NoError(t, err)
		got, err := os.ReadFile(filepath.Join(again, name))
		require.NoError(t, err)
		assert.Equal(t, string(want), string(got), "%s: make bench BENCH=-draw", name)
	}
}

func TestPicturesShowComparableMeasurements(t *testing.T) {
	cost := func(writes int) Cost {
		return Cost{Writes: writes, Processor: map[string]time.Duration{"pdgroup": 2 * time.Second, "": time.Minute, collector: time.Minute}}
	}
	runs := []Run{
		{Commit: "1", Machine: "m, 2 processors", Load: 1.1, Results: []Result{{Clusters: 8, Took: 24 * time.Second, Start: cost(1600)}}},
		{Commit: "2", Machine: "m, 2 processors", Load: 0.9, Processes: []Processes{{Clusters: 1, Took: 5 * time.Second}, {Clusters: 1, Together: true, Took: 4 * time.Second}}},
		{Commit: "3", Machine: "m, 2 processors", Results: []Result{{Clusters: 1, Took: 6 * time.Second, Start: cost(150)}, {Clusters: 8, Took: 20 * time.Second, Start: cost(1200)}}},
	}
	all := makePictures(runs)
	require.Len(t, all, 3)
	writes, times, processor := all[0].chart, all[1].chart, all[2].chart

	assert.Equal(t, []string{"1 (loaded)", "3"}, writes.Places, "a run of processes counts no writes")
	require.Len(t, writes.Lines, 2)
	assert.Equal(t, "1 cluster", writes.Lines[0].Name)
	assert.InDeltaSlice(t, []float64{1, 150}, []float64{writes.Lines[0].Points[0].X, writes.Lines[0].Points[0].Y}, 1e-9)
	assert.InDeltaSlice(t, []float64{200, 150}, []float64{writes.Lines[1].Points[0].Y, writes.Lines[1].Points[1].Y}, 1e-9)
	assert.InDelta(t, 2000, processor.Lines[0].Points[0].Y, 1e-9, "neither the world's time nor the collector's")

	require.Len(t, times.Lines, 5)
	floor := times.Lines[4]
	assert.True(t, floor.Bound)
	assert.Equal(t, "floor: 3 components in order, 1s each from scheduled to Ready", floor.Name)
	assert.InDeltaSlice(t, []float64{1, 3, 8, 3}, []float64{floor.Points[0].X, floor.Points[0].Y, floor.Points[1].X, floor.Points[1].Y}, 1e-9)

	assert.Empty(t, makePictures(nil))
	assert.NotContains(t, renderLinks(all[:1]), all[1].file)
}
