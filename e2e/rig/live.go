package rig

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// ask looks at what an event means beside the watch, which must not be held up:
// the API server ends the watch of who is slow, and forgets what it missed.
func (w *Watcher) ask(ctx context.Context, event watch.EventType, object *unstructured.Unstructured) {
	if object.GetKind() != v1alpha1.KindInstance || event != watch.Added && event != watch.Deleted {
		return
	}
	w.mu.Lock()
	w.looks++
	w.mu.Unlock()
	go func() {
		defer w.answered()
		w.look(ctx, event, object)
	}()
}

// answered is called when one thing is looked at.
func (w *Watcher) answered() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.looks--; w.looks == 0 {
		w.looked.Broadcast()
	}
}

// look asks the API server itself about what an event means. Objects of
// different kinds come through different watches, in any order.
func (w *Watcher) look(ctx context.Context, event watch.EventType, object *unstructured.Unstructured) {
	if event == watch.Deleted {
		w.left(ctx, object)
		return
	}
	w.count(ctx, object)
	w.gate(ctx, object)
}

// get reads an object as it is now, nil if there is none.
func (w *Watcher) get(ctx context.Context, key Key) *unstructured.Unstructured {
	resource, known := watchedResources()[key.Kind]
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
	owner := groupOf(instance)
	if owner.Kind == v1alpha1.KindPDGroup {
		return
	}
	group := w.get(ctx, owner)
	if group == nil {
		return // gone already, and what it owns goes too
	}
	w.mu.Lock()
	needs := needsOf(group, w.tikvGroups())
	lately := needs
	lately.tikv = append(lately.tikv, w.history.former(needs)...)
	missing := lately.missing(func(key Key) bool { return w.history.mayDependOn(key, w.reasonDeadline) })
	w.mu.Unlock()
	if missing != "" {
		// What the watcher knows may lag behind.
		missing = needs.missing(func(key Key) bool { return isReadyNow(w.get(ctx, key)) })
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

// count asks the API server itself whether an Instance that has appeared is one
// too many. Those that are leaving do not count; those of a surge, of a
// failover and the one of a replacement or a rebalance count beyond replicas.
func (w *Watcher) count(ctx context.Context, instance *unstructured.Unstructured) {
	group := groupOf(instance)
	w.mu.Lock()
	have, surging, named := int64(0), int64(0), false
	for key, object := range w.objects {
		if key.Kind != v1alpha1.KindInstance || groupOf(object) != group {
			continue
		}
		retires, _, _ := unstructured.NestedBool(object.Object, "spec", "retire")
		_, replaced := object.GetAnnotations()[v1alpha1.AnnotationReplace]
		named = named || replaced
		switch {
		case retires || object.GetDeletionTimestamp() != nil:
		case object.GetAnnotations()[v1alpha1.AnnotationSurge] != "":
			surging++
		default:
			have++
		}
	}
	w.mu.Unlock()
	live := w.get(ctx, group)
	if live == nil {
		return // gone already, and what it owns goes too
	}
	want, found, _ := unstructured.NestedInt64(live.Object, "spec", "replicas")
	surge, _, _ := unstructured.NestedInt64(live.Object, "spec", "maxSurge")
	if failover, set, _ := unstructured.NestedMap(live.Object, "spec", "failover"); set && failover["policy"] != string(v1alpha1.NoFailover) {
		most, given := failover["max"].(int64)
		if !given {
			most = defaultFailover
		}
		want += most
	}
	replacement, _, _ := unstructured.NestedString(live.Object, "spec", "volumeReplacement")
	rebalance, _, _ := unstructured.NestedString(live.Object, "spec", "rebalance")
	if named || rebalance != "" || replacement == string(v1alpha1.ReplaceVolumes) {
		want++
	}
	if found && (have > want || surging > surge) {
		w.violate("%s has %d Instances and %d of a surge, %d and %d are wanted: %s is one too many", group, have, surging, want, surge, instance.GetName())
	}
}

// defaultFailover is how many stores a failover adds at most where its spec does
// not say.
const defaultFailover = 3

// groupOf returns the group that an Instance belongs to.
func groupOf(instance *unstructured.Unstructured) Key {
	kind, _, _ := unstructured.NestedString(instance.Object, "spec", "group", "kind")
	name, _, _ := unstructured.NestedString(instance.Object, "spec", "group", "name")
	return Key{Kind: kind, Name: name}
}
