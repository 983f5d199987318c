package rig

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
)

func TestAJudgedWatcherNotesWhatAnUnjudgedOneDoesNot(t *testing.T) {
	gone := &unstructured.Unstructured{Object: map[string]any{
		"kind": kindClaim, "metadata": map[string]any{"name": "data"}, "spec": map[string]any{"volumeName": "v"},
	}}
	for _, unjudged := range []bool{false, true} {
		w := newWatcher("namespace", time.Minute)
		w.unjudged = unjudged
		w.take(watch.Deleted, gone)
		assert.Equal(t, unjudged, len(w.Violations()) == 0)
	}
}
