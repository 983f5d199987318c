package workload

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// IsOwned reports whether an object was made by this group. One that was orphaned
// by a group of the same name is taken over.
func IsOwned(g v1alpha1.Group, o metav1.Object) bool {
	if owner := metav1.GetControllerOf(o); owner != nil {
		return owner.UID == g.GetUID()
	}
	return o.GetLabels()[v1alpha1.LabelManagedBy] == v1alpha1.ManagedBy && o.GetLabels()[v1alpha1.LabelComponent] == g.Component()
}
