package rig

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// look asks the API server itself about what an event means. Objects of
// different kinds come through different watches, in any order.
func (w *Watcher) look(ctx context.Context, event watch.EventType, object *unstructured.Unstructured) {
	if object.GetKind() != v1alpha1.KindInstance {
		return
	}
	switch event {
	case watch.Added:
		w.count(ctx, object)
		w.gate(ctx, object)
	case watch.Deleted:
		w.left(ctx, object)
	}
}

// get reads an object as it is now, nil if there is none.
func (w *Watcher) get(ctx context.Context, key Key) *unstructured.Unstructured {
	resource, known := watched()[key.Kind]
	if !known {
		return nil
	}
	object, err := w.client.Resource(resource).Namespace(w.namespace).Get(ctx, key.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		if ctx.Err() == nil {
			w.violate("the watcher cannot read %s: %v", key, err)
		}
		return nil
	}
	return object
}

// gate: no member is made before the groups are Ready that it needs.
func (w *Watcher) gate(ctx context.Context, instance *unstructured.Unstructured) {
	kind, _, _ := unstructured.NestedString(instance.Object, "spec", "group", "kind")
	name, _, _ := unstructured.NestedString(instance.Object, "spec", "group", "name")
	if kind == v1alpha1.KindPDGroup {
		return
	}
	group := w.get(ctx, Key{Kind: kind, Name: name})
	if group == nil {
		return // gone already, and what it owns goes too
	}
	w.mu.Lock()
	needs := w.needs(group)
	missing := needs.missing(func(key Key) bool { return w.history.depended(key, time.Now()) })
	w.mu.Unlock()
	if missing != "" {
		// What the watcher knows may lag behind.
		missing = needs.missing(func(key Key) bool { return readyNow(w.get(ctx, key)) })
	}
	if missing != "" {
		w.violate("Instance %s is made although %s is not Ready (resourceVersion %s)", instance.GetName(), missing, instance.GetResourceVersion())
	}
}

// left: an Instance is there for as long as its pod is.
func (w *Watcher) left(ctx context.Context, instance *unstructured.Unstructured) {
	pod := w.get(ctx, Key{Kind: kindPod, Name: instance.GetName()})
	if pod != nil && metav1.IsControlledBy(pod, instance) {
		w.violate("Instance %s is gone and its pod is still there (resourceVersion %s)", instance.GetName(), instance.GetResourceVersion())
	}
}
