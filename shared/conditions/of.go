package conditions

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// FromObject returns the conditions of an object of the suite, nil of any other one.
func FromObject(o runtime.Object) []metav1.Condition {
	switch x := o.(type) {
	case v1alpha1.Group:
		return x.GetGroupStatus().Conditions
	case *v1alpha1.Instance:
		return x.Status.Conditions
	case *v1alpha1.TidbCluster:
		return x.Status.Conditions
	case v1alpha1.Run:
		return x.GetRunStatus().Conditions
	case *v1alpha1.BackupSchedule:
		return x.Status.Conditions
	}
	return nil
}
