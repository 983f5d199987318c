package rig

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
)

func TestAChangeIsNamedByItsFields(t *testing.T) {
	object := func(version string, status map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"kind": "PDGroup", "metadata": map[string]any{"name": "a", "resourceVersion": version}, "status": status,
		}}
	}
	condition := func(kind, is, reason, message string) map[string]any {
		return map[string]any{"type": kind, "status": is, "reason": reason, "message": message}
	}
	first := map[string]any{
		"conditions": []any{condition("Ready", "False", "A", "a"), condition("UpToDate", "False", "A", "a"), condition("Stalled", "True", "A", "a")},
		"members":    []any{map[string]any{"name": "a-0", "healthy": true}},
	}
	second := map[string]any{
		"conditions": []any{condition("Ready", "True", "B", "b"), condition("UpToDate", "False", "B", "b"), condition("Joined", "True", "A", "a")},
		"members":    []any{map[string]any{"name": "a-0", "healthy": false}},
		"leader":     "a-0",
	}
	w := &Watcher{}
	w.CountChanges()
	w.compare(watch.Added, nil, object("1", first))
	w.compare(watch.Modified, object("1", first), object("2", second))
	w.compare(watch.Modified, object("2", second), object("3", first))
	w.compare(watch.Modified, object("3", first), object("4", first))
	w.compare(watch.Deleted, object("4", first), object("5", first))
	both := Change{"PDGroup", "Joined.status, Ready.status, Stalled.status, UpToDate.reason, status.leader, status.members[].healthy"}
	assert.Equal(t, map[Change]int{
		{"PDGroup", created}: 1, both: 2, {"PDGroup", ""}: 1, {"PDGroup", deleted}: 1,
	}, w.Changes())
	assert.Equal(t, both, MostOften(w.Changes())[0])
}
