package objects_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tidb-groups/tidb-groups/e2e/objects"
)

func TestConditionsAreReadAsTheyWereWritten(t *testing.T) {
	at := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).Local())
	want := []metav1.Condition{
		{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Ready", Message: "3 of 3", ObservedGeneration: 7, LastTransitionTime: at},
		{Type: "UpToDate", Status: metav1.ConditionFalse, Reason: "Progressing", LastTransitionTime: at},
	}
	var entries []any
	for _, c := range want {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&c)
		require.NoError(t, err)
		entries = append(entries, fields)
	}
	good := len(entries)
	entries = append(entries,
		"no condition", map[string]any{"type": "Number", "status": int64(1)}, map[string]any{"type": "Date", "status": "True", "lastTransitionTime": "now"},
		map[string]any{"type": "Text", "status": "True", "observedGeneration": "1"})
	object := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": entries}}}
	assert.Len(t, objects.Conditions(object), good)
	assert.Equal(t, want, objects.Conditions(object))
	assert.Equal(t, &want[1], objects.Condition(object, "UpToDate"))
	for _, none := range []string{"Number", "Date", "Text", "Paused"} {
		assert.Nil(t, objects.Condition(object, none))
	}
	entries[0].(map[string]any)["observedGeneration"] = float64(7) //nolint:forcetypeassert // made above
	assert.Equal(t, want, objects.Conditions(object), "as encoding/json decodes numbers")
	assert.Empty(t, objects.Conditions(&unstructured.Unstructured{Object: map[string]any{"status": "none"}}))
}
