package apply

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// What neither was changed nor is desired differently is compared once.
func TestAnObjectThatNeededNoWriteIsNotComparedAgain(t *testing.T) {
	group := func(change func(*v1alpha1.TiKVGroup)) *v1alpha1.TiKVGroup {
		g := &v1alpha1.TiKVGroup{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "1", ResourceVersion: "10", Generation: 3, Labels: map[string]string{"l": "1"}, Annotations: map[string]string{"a": "1"}, Finalizers: []string{"f"}}}
		g.Spec.Replicas = ptr.To[int32](3)
		change(g)
		return g
	}
	same := func(*v1alpha1.TiKVGroup) {}
	for name, c := range map[string]struct {
		desired, live func(*v1alpha1.TiKVGroup)
		compared      bool
	}{
		"nothing":       {same, same, false},
		"the status":    {same, func(g *v1alpha1.TiKVGroup) { g.ResourceVersion, g.Status.Replicas = "11", 2 }, false},
		"the spec":      {same, func(g *v1alpha1.TiKVGroup) { g.ResourceVersion, g.Generation = "11", 4 }, true},
		"a label":       {same, func(g *v1alpha1.TiKVGroup) { g.ResourceVersion, g.Labels["l"] = "11", "2" }, true},
		"an annotation": {same, func(g *v1alpha1.TiKVGroup) { g.ResourceVersion, g.Annotations = "11", nil }, true},
		"a finalizer":   {same, func(g *v1alpha1.TiKVGroup) { g.ResourceVersion, g.Finalizers = "11", nil }, true},
		"the owner": {same, func(g *v1alpha1.TiKVGroup) {
			g.ResourceVersion, g.OwnerReferences = "11", []metav1.OwnerReference{{UID: "o"}}
		}, true},
		"it is being deleted": {same, func(g *v1alpha1.TiKVGroup) {
			g.ResourceVersion, g.DeletionTimestamp = "11", &metav1.Time{Time: time.Unix(1, 0)}
		}, true},
		"a kind without generation": {same, func(g *v1alpha1.TiKVGroup) { g.ResourceVersion, g.Generation = "11", 0 }, true},
		"what is desired":           {func(g *v1alpha1.TiKVGroup) { g.Spec.Replicas = ptr.To[int32](5) }, same, true},
		"another object":            {same, func(g *v1alpha1.TiKVGroup) { g.UID = "2" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			m := NewMemory()
			assert.True(t, compares(m, group(same), group(same), true), "the first time")
			assert.Equal(t, c.compared, compares(m, group(c.desired), group(c.live), true))
		})
	}
	t.Run("what was written, or could not be, is compared again", func(t *testing.T) {
		m := NewMemory()
		compares(m, group(same), group(same), true)
		other := func(g *v1alpha1.TiKVGroup) { g.Spec.Replicas = ptr.To[int32](5) }
		compares(m, group(other), group(same), false)
		assert.True(t, compares(m, group(same), group(same), true))
	})
	t.Run("nothing is known of what there is not", func(t *testing.T) {
		m := NewMemory()
		assert.True(t, compares(m, group(same), nil, false))
		assert.True(t, compares(m, group(same), nil, true))
		assert.True(t, compares((*Memory)(nil), group(same), group(same), true))
	})
	t.Run("it is compared again after an hour", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			m := NewMemory()
			compares(m, group(same), group(same), true)
			<-time.After(time.Hour - time.Second)
			assert.False(t, compares(m, group(same), group(same), true))
			<-time.After(2 * time.Second)
			assert.True(t, compares(m, group(same), group(same), true))
		})
	})
}

// compares reports whether the objects had to be compared, and has it noted what came out.
func compares(m *Memory, desired, live *v1alpha1.TiKVGroup, asDesired bool) bool {
	var there client.Object
	if live != nil {
		there = live
	}
	known := m.isUnchanged(desired, there)
	if !known {
		m.note(desired, there, asDesired)
	}
	return !known
}
