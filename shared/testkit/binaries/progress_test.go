package binaries

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestProgressCountsPackagesAndKeepsComplaints(t *testing.T) {
	p := &Progress{name: "pd-server", total: 5}
	for _, text := range []string{
		"go: downloading example.com/a v1.0.0\n", "internal/abi\nexample.com/", "a/b\n",
		"# example.com/c\nc.go:1:2: undefined: x\n", "no newline",
	} {
		n, err := p.Write([]byte(text))
		require.NoError(t, err)
		assert.Len(t, text, n)
	}
	assert.Equal(t, "  pd-server: 2 of at most 5 packages compiled after 1 min 5 s", p.line(65*time.Second))
	assert.Equal(t, "go: downloading example.com/a v1.0.0\n# example.com/c\nc.go:1:2: undefined: x\nno newline", p.Complaints())

	for range 100 {
		_, err := p.Write([]byte("c.go:1: again\n"))
		require.NoError(t, err)
	}
	assert.Len(t, p.other, complaintLines)
}

func TestProgressWithoutATotal(t *testing.T) {
	p := &Progress{name: "etcd"}
	assert.Equal(t, "  etcd: 0 packages compiled after 40 s", p.line(40*time.Second))
}

func TestAFailedBuildShowsWhatTheCompilerSaid(t *testing.T) {
	p, table := tiny(t)
	table["broken"] = program{module: p.module, pkg: "example.com/nowhere"}
	err := p.buildMissing(t.Context(), table, []string{"broken"})
	require.ErrorContains(t, err, "build broken v1.2.3")
	require.ErrorContains(t, err, "example.com/nowhere")
	require.ErrorContains(t, err, "run the same command again")
}

func TestMissingNamesEveryBuildOnceInOrder(t *testing.T) {
	t.Setenv(CacheEnv, t.TempDir())
	t.Setenv(assetsEnv, "")
	builds, err := MissingBuilds("pd-server", "etcd", "kubectl", "kubelet", "pd-server")
	require.NoError(t, err)
	assert.Equal(t, []Build{
		{Programs: []string{"pd-server"}, Estimate: time.Minute},
		{Programs: []string{"etcd"}, Estimate: 20 * time.Second},
		{Programs: []string{"kubectl", "kubelet"}, Estimate: 4 * time.Minute},
	}, builds)
	_, err = MissingBuilds("nothing")
	require.ErrorContains(t, err, `find program "nothing": unknown name`)
}

func TestDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 s", 40 * time.Second: "40 s", 4 * time.Minute: "4 min", 80 * time.Second: "1 min 20 s", 61*time.Minute + 2*time.Second: "61 min 2 s",
	} {
		assert.Equal(t, want, FormatDuration(d))
	}
}
