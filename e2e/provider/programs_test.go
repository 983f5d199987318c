package provider

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFreeDiskAndMemoryAreCheckedBeforeAnythingBegins(t *testing.T) {
	const g = 1 << 30
	require.NoError(t, checkResources(diskToBuild*g, memory*g, true, "/cache"))
	require.NoError(t, checkResources(diskToRun*g, memory*g, false, "/cache"))
	require.NoError(t, checkResources(diskToRun*g, 0, false, "/cache"), "a machine that does not say how much memory it has")

	err := checkResources(diskToBuild*g-1, memory*g, true, "/cache")
	require.ErrorContains(t, err, "/cache has 12.0 GiB free, and building Kubernetes and PD needs 12 GiB")
	require.ErrorContains(t, err, "TIDB_GROUPS_CACHE=/elsewhere")
	require.ErrorContains(t, checkResources(diskToRun*g-1, memory*g, false, "/cache"), "make room")
	require.ErrorContains(t, checkResources(diskToBuild*g, memory*g-1, true, "/cache"), "three nodes with their pods need 2 GiB")
}

func TestFreeDiskOfADirectoryThatIsNotThereYet(t *testing.T) {
	free, err := freeDisk(t.TempDir() + "/a/b")
	require.NoError(t, err)
	assert.Positive(t, free)
}

func TestAvailableMemory(t *testing.T) {
	assert.Equal(t, uint64(3<<20), availableMemory("MemTotal:  8192 kB\nMemAvailable:    3072 kB\nBuffers: 1 kB\n"))
	assert.Zero(t, availableMemory("MemTotal: 8192 kB\n"))
}
