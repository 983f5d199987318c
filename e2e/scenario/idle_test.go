package scenario_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tidb-groups/tidb-groups/e2e/objects"
	"github.com/tidb-groups/tidb-groups/e2e/scenario"
)

// restless is a world in which an operator writes at the looks that are listed. With states, the
// database calls store a-0 so at each look, and the last for good.
type restless struct {
	*database
	looks, reads int
	writes       map[int]bool
	states       []string
	written      int
}

func (r *restless) Observed() scenario.Observed {
	if r.writes[r.looks] {
		r.written++
	}
	r.looks++
	return scenario.Observed{Versions: r.written}
}

func (r *restless) Await(_ context.Context, holds func(objects.Set) error) error {
	state := r.states[min(r.reads, len(r.states)-1)]
	r.reads++
	object := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"uid": "the first"}, "status": map[string]any{"member": map[string]any{"state": state}}}}
	return holds(objects.NewSet(map[objects.Key]*unstructured.Unstructured{{Kind: "Instance", Name: "a-0"}: object}))
}

// Two looks are one time in which nothing may be written; the first of them is before a world is idle.
func TestAWorldIsIdleUnlessAnOperatorWritesWithoutReason(t *testing.T) {
	for name, c := range map[string]struct {
		world restless
		says  string
	}{
		"at rest":                        {restless{states: []string{"Up"}}, ""},
		"once it has come to rest":       {restless{writes: map[int]bool{1: true}, states: []string{"Up"}}, ""},
		"written":                        {restless{writes: map[int]bool{3: true}, states: []string{"Up"}}, "1 new versions of objects while idle"},
		"written as a store is back":     {restless{writes: map[int]bool{3: true}, states: []string{"Disconnected", "Up"}}, ""},
		"written again, when it is back": {restless{writes: map[int]bool{3: true, 7: true}, states: []string{"Disconnected", "Up"}}, "1 new versions of objects while idle"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.world.database = newDatabase(t)
			_, err := scenario.Run(t.Context(), &c.world, scenario.Scenario{Name: "idle", Worlds: []string{scenario.Containers}, Steps: []scenario.Step{{Idle: &metav1.Duration{Duration: time.Millisecond}}}})
			if c.says == "" {
				assert.NoError(t, err)
				return
			}
			assert.ErrorContains(t, err, c.says)
		})
	}
}
