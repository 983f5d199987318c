package watch_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/watch"
)

// delays is a queue that keeps how soon each request is to come.
type delays struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	after []time.Duration
}

func (d *delays) AddAfter(_ reconcile.Request, after time.Duration) { d.after = append(d.after, after) }

// What turns a condition is mirrored at once, what only words and numbers change later.
func TestWordsWakeTheirMirrorLater(t *testing.T) {
	const moment = 100 * time.Millisecond
	group := func(change func(*v1alpha1.TiKVGroup)) *v1alpha1.TiKVGroup {
		g := &v1alpha1.TiKVGroup{ObjectMeta: metav1.ObjectMeta{Name: "a", Generation: 1, Labels: map[string]string{"l": "1"}}}
		g.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, ObservedGeneration: 1, Reason: "A", Message: "a"}}
		change(g)
		return g
	}
	gather := watch.Gather(moment, func(_ context.Context, o client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: o.GetName()}}}
	})
	for name, c := range map[string]struct {
		change func(*v1alpha1.TiKVGroup)
		after  time.Duration
	}{
		"a condition turns": {func(g *v1alpha1.TiKVGroup) { g.Status.Conditions[0].Status = metav1.ConditionTrue }, moment},
		"a condition comes": {func(g *v1alpha1.TiKVGroup) {
			g.Status.Conditions = append(g.Status.Conditions, metav1.Condition{Type: "B"})
		}, moment},
		"a condition goes":        {func(g *v1alpha1.TiKVGroup) { g.Status.Conditions = nil }, moment},
		"a new spec is observed":  {func(g *v1alpha1.TiKVGroup) { g.Status.Conditions[0].ObservedGeneration = 2 }, moment},
		"the spec changes":        {func(g *v1alpha1.TiKVGroup) { g.Generation = 2 }, moment},
		"a label changes":         {func(g *v1alpha1.TiKVGroup) { g.Labels["l"] = "2" }, moment},
		"an annotation changes":   {func(g *v1alpha1.TiKVGroup) { g.Annotations = map[string]string{"a": "1"} }, moment},
		"it is being deleted":     {func(g *v1alpha1.TiKVGroup) { g.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }, moment},
		"its owner changes":       {func(g *v1alpha1.TiKVGroup) { g.OwnerReferences = []metav1.OwnerReference{{UID: "o"}} }, moment},
		"a finalizer comes":       {func(g *v1alpha1.TiKVGroup) { g.Finalizers = []string{"f"} }, moment},
		"a reason changes":        {func(g *v1alpha1.TiKVGroup) { g.Status.Conditions[0].Reason, g.Status.Reason = "B", "B" }, time.Second},
		"a message changes":       {func(g *v1alpha1.TiKVGroup) { g.Status.Conditions[0].Message, g.Status.Message = "b", "b" }, time.Second},
		"a number changes":        {func(g *v1alpha1.TiKVGroup) { g.Status.ReadyReplicas = 1 }, time.Second},
		"nothing seems to change": {func(g *v1alpha1.TiKVGroup) { g.ResourceVersion = "2" }, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			q := &delays{}
			gather.Update(t.Context(), event.UpdateEvent{ObjectOld: group(func(*v1alpha1.TiKVGroup) {}), ObjectNew: group(c.change)}, q)
			assert.Equal(t, []time.Duration{c.after}, q.after)
		})
	}
	q := &delays{}
	gather.Create(t.Context(), event.CreateEvent{Object: group(func(*v1alpha1.TiKVGroup) {})}, q)
	gather.Delete(t.Context(), event.DeleteEvent{Object: group(func(*v1alpha1.TiKVGroup) {})}, q)
	assert.Equal(t, []time.Duration{moment, moment}, q.after)
}
