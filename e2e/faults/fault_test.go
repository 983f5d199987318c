package faults_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/e2e/faults"
)

func TestAFaultIsReadAsItWasWritten(t *testing.T) {
	for _, text := range []string{
		"none", "crash:pdgroup/patch/instances.status/basic-pd-0/2", "crash-all:instance/create/pods/basic-pd-0/1",
		"drop:instance/pods/basic-pd-0/3", "stale:tidbcluster/pdgroups/basic-pd/10/1.5s",
		"409:instance/delete/pods/a/1", "429:instance/create/pods/a/1", "500:instance/create/pods/a/1",
		"504:instance/create/pods/a/1", "reset:instance/create/pods/a/1", "lost:instance/create/pods/a/1",
	} {
		f, err := faults.Parse(text)
		require.NoError(t, err)
		assert.Equal(t, text, f.String())
	}
	assert.Equal(t, "none", faults.Fault{}.String())
}

func TestAnInvalidFaultIsRefused(t *testing.T) {
	for _, text := range []string{
		"", "none:x", "fire:instance/create/pods/a/1", "crash", "crash:instance/create/pods/a", "crash:instance/create/pods/a/0",
		"drop:instance/pods/a/b", "stale:instance/pods/a/1", "stale:instance/pods/a/1/soon",
	} {
		_, err := faults.Parse(text)
		assert.Error(t, err, text)
	}
}
