package watch_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/watch"
)

func TestAnEditChangesSpecMetadataOrDeletion(t *testing.T) {
	edited := watch.EditedPredicate()
	for name, c := range map[string]struct {
		change func(*v1alpha1.PDGroup)
		want   bool
	}{
		"the spec":              {func(g *v1alpha1.PDGroup) { g.Generation = 2 }, true},
		"an annotation":         {func(g *v1alpha1.PDGroup) { g.Annotations = map[string]string{"a": "1"} }, true},
		"a label":               {func(g *v1alpha1.PDGroup) { g.Labels = map[string]string{"a": "1"} }, true},
		"it is to be deleted":   {func(g *v1alpha1.PDGroup) { g.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }, true},
		"the status":            {func(g *v1alpha1.PDGroup) { g.Status.ObservedGeneration, g.ResourceVersion = 1, "2" }, false},
		"a finalizer":           {func(g *v1alpha1.PDGroup) { g.Finalizers = []string{"f"} }, false},
		"nothing, as on a list": {func(*v1alpha1.PDGroup) {}, false},
	} {
		t.Run(name, func(t *testing.T) {
			before := &v1alpha1.PDGroup{ObjectMeta: metav1.ObjectMeta{Name: "a", Generation: 1, ResourceVersion: "1"}}
			after := before.DeepCopy()
			c.change(after)
			assert.Equal(t, c.want, edited.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}))
			assert.False(t, edited.Delete(event.DeleteEvent{Object: after}))
			assert.False(t, edited.Generic(event.GenericEvent{Object: after}))
		})
	}
}

// What is there when an operator starts was edited meanwhile if its status is of another spec.
func TestAnEditMadeWhileTheOperatorWasDownIsFoundAtItsStart(t *testing.T) {
	edited := watch.EditedPredicate()
	for name, object := range map[string]func(generation, observed int64) client.Object{
		"a group": func(generation, observed int64) client.Object {
			g := &v1alpha1.TiKVGroup{ObjectMeta: metav1.ObjectMeta{Generation: generation}}
			g.Status.ObservedGeneration = observed
			return g
		},
		"a TidbCluster": func(generation, observed int64) client.Object {
			return &v1alpha1.TidbCluster{ObjectMeta: metav1.ObjectMeta{Generation: generation}, Status: v1alpha1.TidbClusterStatus{ObservedGeneration: observed}}
		},
		"a Backup": func(generation, observed int64) client.Object {
			b := &v1alpha1.Backup{ObjectMeta: metav1.ObjectMeta{Generation: generation}}
			b.Status.ObservedGeneration = observed
			return b
		},
		"a BackupSchedule": func(generation, observed int64) client.Object {
			return &v1alpha1.BackupSchedule{ObjectMeta: metav1.ObjectMeta{Generation: generation}, Status: v1alpha1.BackupScheduleStatus{ObservedGeneration: observed}}
		},
		"an Instance": func(generation, observed int64) client.Object {
			return &v1alpha1.Instance{ObjectMeta: metav1.ObjectMeta{Generation: generation}, Status: v1alpha1.InstanceStatus{ObservedGeneration: observed}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			assert.True(t, edited.Create(event.CreateEvent{Object: object(2, 1), IsInInitialList: true}))
			assert.False(t, edited.Create(event.CreateEvent{Object: object(2, 2), IsInInitialList: true}))
			made := object(1, 0)
			assert.True(t, edited.Create(event.CreateEvent{Object: made}), "a user has just made it")
			made.SetOwnerReferences([]metav1.OwnerReference{{Kind: "TidbCluster", Name: "c", Controller: new(true)}})
			assert.False(t, edited.Create(event.CreateEvent{Object: made}), "an operator has")
		})
	}
}
