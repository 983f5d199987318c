package gate_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/gate"
)

func pdGroup(generation, observed int64, status metav1.ConditionStatus) *v1alpha1.PDGroup {
	g := &v1alpha1.PDGroup{ObjectMeta: metav1.ObjectMeta{Name: "basic-pd", Generation: generation}}
	g.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: status, ObservedGeneration: observed, Message: "2 of 3 members healthy"}}
	return g
}

func TestPDGroupGate(t *testing.T) {
	deleting := pdGroup(1, 1, metav1.ConditionTrue)
	now := metav1.Now()
	deleting.DeletionTimestamp = &now
	for name, c := range map[string]struct {
		pd      *v1alpha1.PDGroup
		open    bool
		message string
	}{
		"opens on a current Ready":                 {pdGroup(2, 2, metav1.ConditionTrue), true, ""},
		"refuses an answer to an older generation": {pdGroup(2, 1, metav1.ConditionTrue), false, "its operator has not processed it yet"},
		"says how to look at the other one":        {pdGroup(1, 1, metav1.ConditionFalse), false, "describe pdgroup basic-pd"},
		"says how to fix a missing one":            {nil, false, "spec.pdGroup.name"},
		"says the same of one without conditions":  {&v1alpha1.PDGroup{ObjectMeta: metav1.ObjectMeta{Name: "basic-pd"}}, false, "is not Ready yet"},
		"and of one that was not Ready before":     {pdGroup(2, 1, metav1.ConditionFalse), false, "is not Ready yet"},
		"refuses one that is being deleted":        {deleting, false, "being deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			result := gate.PDGroup("basic-pd", c.pd)
			assert.Equal(t, c.open, result.Open)
			assert.Contains(t, result.Message, c.message)
		})
	}
}

func TestOneReadyTiKVGroupIsEnough(t *testing.T) {
	make1 := func(name, pd string, status metav1.ConditionStatus) *v1alpha1.TiKVGroup {
		g := &v1alpha1.TiKVGroup{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1}}
		g.Spec.PDGroup.Name = pd
		g.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: status, ObservedGeneration: 1, Message: "no store is Up"}}
		return g
	}
	ready, unready := make1("a", "basic-pd", metav1.ConditionTrue), make1("b", "basic-pd", metav1.ConditionFalse)
	foreign := make1("c", "other-pd", metav1.ConditionTrue)
	assert.True(t, gate.AnyTiKVGroup("basic-pd", []*v1alpha1.TiKVGroup{unready, ready}).Open)
	assert.False(t, gate.AnyTiKVGroup("basic-pd", []*v1alpha1.TiKVGroup{unready, foreign}).Open)
	assert.Contains(t, gate.AnyTiKVGroup("basic-pd", []*v1alpha1.TiKVGroup{foreign}).Message, "create one")

	edited := make1("d", "basic-pd", metav1.ConditionTrue)
	edited.Generation = 2
	assert.True(t, gate.AnyTiKVGroup("basic-pd", []*v1alpha1.TiKVGroup{edited, unready}).Lagging, "one was Ready when it was edited")
	assert.False(t, gate.AnyTiKVGroup("basic-pd", []*v1alpha1.TiKVGroup{unready}).Lagging)
	assert.False(t, gate.AnyTiKVGroup("basic-pd", []*v1alpha1.TiKVGroup{edited, ready}).Lagging, "another one is Ready")
}
