package watch_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/watch"
)

func TestPredicates(t *testing.T) {
	object := func(change func(*v1alpha1.PDGroup)) client.Object {
		g := &v1alpha1.PDGroup{ObjectMeta: metav1.ObjectMeta{Name: "a", Generation: 1, ResourceVersion: "1"}}
		if change != nil {
			change(g)
		}
		return g
	}
	for name, c := range map[string]struct {
		predicate predicate.Predicate
		change    func(*v1alpha1.PDGroup)
		passes    bool
	}{
		"one's own status is work":   {watch.OwnPredicate(), func(g *v1alpha1.PDGroup) { g.ResourceVersion, g.Status.ClusterID = "2", "7" }, true},
		"another's status is work":   {watch.ChangedPredicate(), func(g *v1alpha1.PDGroup) { g.ResourceVersion = "2" }, true},
		"a resync is none":           {watch.ChangedPredicate(), nil, false},
		"a node's label is work":     {watch.NodePredicate(), func(g *v1alpha1.PDGroup) { g.Labels = map[string]string{"a": "b"} }, true},
		"a node's heartbeat is none": {watch.NodePredicate(), func(g *v1alpha1.PDGroup) { g.ResourceVersion = "2" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.passes, c.predicate.Update(event.UpdateEvent{ObjectOld: object(nil), ObjectNew: object(c.change)}))
			assert.True(t, c.predicate.Create(event.CreateEvent{Object: object(nil)}))
			assert.True(t, c.predicate.Delete(event.DeleteEvent{Object: object(nil)}))
		})
	}
}

func TestACordonedNodeTriggersAReconcile(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	cordoned := node.DeepCopy()
	cordoned.Spec.Unschedulable = true
	assert.True(t, watch.NodePredicate().Update(event.UpdateEvent{ObjectOld: node, ObjectNew: cordoned}))
	assert.True(t, watch.NodePredicate().Update(event.UpdateEvent{ObjectOld: cordoned, ObjectNew: node}))
	assert.False(t, watch.NodePredicate().Update(event.UpdateEvent{ObjectOld: cordoned, ObjectNew: cordoned.DeepCopy()}))
}

func TestTheStatusOfAPDGroupWakesOnlyItsGroups(t *testing.T) {
	scheme := runtime.NewScheme()
	assert.NoError(t, v1alpha1.AddToScheme(scheme))
	group := func(namespace, name, pd string) client.Object {
		g := &v1alpha1.TiDBGroup{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		g.Spec.PDGroup.Name = pd
		return g
	}
	reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		group("ns", "mine", "basic-pd"), group("ns", "other", "other-pd"), group("elsewhere", "mine", "basic-pd")).Build()
	list := func() client.ObjectList { return &v1alpha1.TiDBGroupList{} }
	tikv := &v1alpha1.TiKVGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "basic-tikv"}}
	tikv.Spec.PDGroup.Name = "basic-pd"
	for name, c := range map[string]struct {
		handler handler.EventHandler
		object  client.Object
		want    []string
	}{
		"a PDGroup wakes those that name it": {watch.GroupsOf(reader, list, watch.ByName), &v1alpha1.PDGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "basic-pd"}}, []string{"ns/mine"}},
		"a TiKVGroup wakes those of its PD":  {watch.GroupsOf(reader, list, watch.ByPDGroup), tikv, []string{"ns/mine"}},
		"a node wakes everybody":             {watch.AllGroups(reader, list), &corev1.Node{}, []string{"elsewhere/mine", "ns/mine", "ns/other"}},
	} {
		t.Run(name, func(t *testing.T) {
			queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
			defer queue.ShutDown()
			c.handler.Generic(context.Background(), event.GenericEvent{Object: c.object}, queue)
			var got []string
			for queue.Len() > 0 {
				r, _ := queue.Get()
				queue.Done(r)
				got = append(got, r.String())
			}
			assert.ElementsMatch(t, c.want, got)
		})
	}
}
