package watch

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/lease"
)

// Members wakes the group up that an Instance names, whatever owns it by now:
// only the operator of that kind can let its member go.
func Members(kind string) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
		i, ok := object.(*v1alpha1.Instance)
		if !ok || i.Spec.Group.Kind != kind {
			return nil
		}
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: i.Namespace, Name: i.Spec.Group.Name}}}
	})
}

// GroupsOfObject wakes the group up that an object is labelled with, for claims
// and other objects that groups do not own.
func GroupsOfObject(component string) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
		labels := object.GetLabels()
		if labels[v1alpha1.LabelComponent] != component || labels[v1alpha1.LabelGroup] == "" {
			return nil
		}
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: labels[v1alpha1.LabelGroup]}}}
	})
}

// ByLease is the pdGroup function of disruption Leases.
func ByLease(object client.Object) string { return lease.PDGroup(object.GetName()) }

// ByCluster is the pdGroup function of objects that carry the cluster's label.
func ByCluster(object client.Object) string { return object.GetLabels()[v1alpha1.LabelCluster] }
