package bootstrap

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// AwaitLeaving waits for another owner's object, under a name that the cluster needs, that goes by
// itself: it is being deleted, or Kubernetes' garbage collector deletes it, because it belongs to a
// cluster of the same name that was deleted. Done if it stays.
func AwaitLeaving(c *v1alpha1.TidbCluster, kind string, o metav1.Object) step.Outcome {
	why := ""
	switch owner := metav1.GetControllerOf(o); {
	case o.GetDeletionTimestamp() != nil:
		why = ", which was not made by this TidbCluster, is being deleted"
	case owner != nil && owner.Kind == v1alpha1.KindTidbCluster && owner.Name == c.Name && owner.UID != c.UID:
		why = " belongs to a deleted TidbCluster of the same name, and Kubernetes deletes it"
	default:
		return step.Done()
	}
	return step.Wait(kind, deadline, v1alpha1.ReasonDeleting, kind+" "+o.GetName()+why+"; a new one is made when it is gone")
}
