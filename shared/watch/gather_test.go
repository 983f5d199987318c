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
	after map[string][]time.Duration
}

func (d *delays) AddAfter(r reconcile.Request, after time.Duration) {
	d.after[r.Name] = append(d.after[r.Name], after)
}

// Whatever comes of a group wakes its mirror a moment later.
func TestABurstIsGathered(t *testing.T) {
	const moment = 100 * time.Millisecond
	gather := watch.Gather(moment, func(_ context.Context, o client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: o.GetName()}}}
	})
	group := func(name string) *v1alpha1.TiKVGroup {
		return &v1alpha1.TiKVGroup{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	q := &delays{after: map[string][]time.Duration{}}
	gather.Create(t.Context(), event.CreateEvent{Object: group("made")}, q)
	gather.Update(t.Context(), event.UpdateEvent{ObjectOld: group("was"), ObjectNew: group("is")}, q)
	gather.Delete(t.Context(), event.DeleteEvent{Object: group("gone")}, q)
	gather.Generic(t.Context(), event.GenericEvent{Object: group("told")}, q)
	once := []time.Duration{moment}
	assert.Equal(t, map[string][]time.Duration{"made": once, "is": once, "gone": once, "told": once}, q.after)
}
