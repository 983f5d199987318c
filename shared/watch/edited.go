package watch

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// EditedPredicate passes what a user, or a tool of the user, changes in an object: its spec, labels
// or annotations, that it is there, and that it is to be deleted. What an operator makes is
// no edit: a new cluster makes many objects, and would go before a change of another one.
// Of the objects that are there when an operator starts it passes those whose spec the
// operator has not seen.
func EditedPredicate() predicate.Predicate {
	asks := SpecPredicate()
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool {
			if e.IsInInitialList {
				return hasStaleStatus(e.Object)
			}
			return metav1.GetControllerOf(e.Object) == nil
		},
		UpdateFunc: func(e event.UpdateEvent) bool {
			return asks.Update(e) || e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero()
		},
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// hasStaleStatus reports whether an object's status is of an earlier spec.
func hasStaleStatus(object client.Object) bool {
	observed := object.GetGeneration() // of a kind that does not tell
	switch of := object.(type) {
	case v1alpha1.Group:
		observed = of.GetGroupStatus().ObservedGeneration
	case v1alpha1.Run:
		observed = of.GetRunStatus().ObservedGeneration
	case *v1alpha1.TidbCluster:
		observed = of.Status.ObservedGeneration
	case *v1alpha1.BackupSchedule:
		observed = of.Status.ObservedGeneration
	case *v1alpha1.Instance:
		observed = of.Status.ObservedGeneration
	}
	return observed != object.GetGeneration()
}
