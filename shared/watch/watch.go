package watch

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/index"
)

// OwnPredicate passes every change of a reconciler's own kind, its own status writes
// included. A reconcile that ran before the last status write had come back
// through the cache may have found that there was nothing to write; only the
// write coming back reports that there is.
func OwnPredicate() predicate.Predicate { return ChangedPredicate() }

// ChangedPredicate drops updates that changed nothing, which informers send on a resync.
func ChangedPredicate() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetResourceVersion() != e.ObjectNew.GetResourceVersion()
	}}
}

// SpecPredicate passes updates of which the spec or the metadata differ; the status is
// another owner's.
func SpecPredicate() predicate.Predicate {
	return predicate.Or(predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}, predicate.AnnotationChangedPredicate{})
}

// NodePredicate passes events of nodes whose labels or taints changed, or that were cordoned
// or uncordoned: none of that counts as a generation of theirs.
func NodePredicate() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return !equality.Semantic.DeepEqual(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels()) || !equality.Semantic.DeepEqual(nodeRestrictions(e.ObjectOld), nodeRestrictions(e.ObjectNew))
	}}
}

// nodeRestrictions is what keeps pods off a node.
func nodeRestrictions(o client.Object) corev1.NodeSpec {
	node, ok := o.(*corev1.Node)
	if !ok {
		return corev1.NodeSpec{}
	}
	out := corev1.NodeSpec{Unschedulable: node.Spec.Unschedulable}
	for _, t := range node.Spec.Taints {
		if t.Effect != corev1.TaintEffectPreferNoSchedule {
			out.Taints = append(out.Taints, corev1.Taint{Key: t.Key, Value: t.Value, Effect: t.Effect})
		}
	}
	return out
}

// GroupsOf wakes the groups up that depend on what an object of the same
// namespace says. pdGroup tells from the object which PDGroup it speaks for;
// list returns an empty list of the groups' kind.
func GroupsOf(reader client.Reader, list func() client.ObjectList, pdGroup func(client.Object) string) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, object client.Object) []reconcile.Request {
		return listRequests(ctx, reader, list(), object.GetNamespace(), pdGroup(object))
	})
}

// AllGroups wakes every group up; it is for objects outside of namespaces.
func AllGroups(reader client.Reader, list func() client.ObjectList) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, _ client.Object) []reconcile.Request {
		return listRequests(ctx, reader, list(), metav1.NamespaceAll, "")
	})
}

// ByName is the pdGroup function of PDGroups themselves, and of what the PD
// poller reports.
func ByName(object client.Object) string { return object.GetName() }

// ByPDGroup is the pdGroup function of groups that name a PDGroup.
func ByPDGroup(object client.Object) string {
	if g, ok := object.(v1alpha1.Group); ok {
		return g.PDGroupName()
	}
	return ""
}

// listRequests lists the groups of a PDGroup, all groups if it is empty. A list
// that fails wakes nothing: the cache that it reads from is not there, and then
// neither is the event. Nothing of the list leaves but names, so it is not copied.
func listRequests(ctx context.Context, reader client.Reader, list client.ObjectList, namespace, pdGroup string) []reconcile.Request {
	if err := reader.List(ctx, list, client.InNamespace(namespace), index.OfPDGroup(pdGroup), client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	var out []reconcile.Request
	for _, g := range v1alpha1.GroupsIn(list) {
		if pdGroup == "" || g.PDGroupName() == pdGroup {
			out = append(out, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: g.GetNamespace(), Name: g.GetName()}})
		}
	}
	return out
}
