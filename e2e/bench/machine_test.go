package bench

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAMissingResourceOfAMachineIsNamedBeforeTheRun(t *testing.T) {
	c := Case{Clusters: 100, Foreign: 1000}
	need := RequiredMachine(c)
	assert.Equal(t, Machine{Memory: 7196 << 20, Files: 1728}, need)
	require.NoError(t, need.Lacks(c))

	less := Machine{Memory: need.Memory - 1, Files: need.Files - 1}.Lacks(c)
	require.ErrorContains(t, less, "memory: 100 clusters and 1000 foreign objects of each kind take about 7196 MiB, and 7195 are available")
	require.ErrorContains(t, less, "open files: 100 clusters take about 1728, and a process may have 1727: ulimit -n 1728")
	require.ErrorContains(t, Machine{Memory: 1 << 50, Files: 1 << 20}.Lacks(Case{Clusters: 1, Foreign: 5001}), "-foreign 5001: etcd has room for 5000 of each kind: try -foreign 5000")
}

func TestThisMachineIsKnown(t *testing.T) {
	here, err := LocalMachine()
	require.NoError(t, err)
	assert.Positive(t, here.Memory)
	assert.Positive(t, here.Files)
	missing, err := MissingBuilds()
	require.NoError(t, err)
	assert.Empty(t, missing, "the tests of this package run with them")
}
