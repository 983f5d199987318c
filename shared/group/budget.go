package group

import (
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// Budget returns the PodDisruptionBudget of all members of one component in a
// cluster, of whatever group, which lets a drain take one of them at a time. It
// counts pods, because Kubernetes cannot count those of an owner without /scale
// in any other way.
func Budget(g v1alpha1.Group, owner metav1.OwnerReference, members int32) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: g.GetNamespace(), Name: BudgetName(g),
			Labels: map[string]string{
				v1alpha1.LabelManagedBy: v1alpha1.ManagedBy, v1alpha1.LabelName: "tidb",
				v1alpha1.LabelCluster: g.PDGroupName(), v1alpha1.LabelComponent: g.Component(),
			},
			OwnerReferences: []metav1.OwnerReference{owner},
		},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: ptr.To(intstr.FromInt32(max(members-1, 0))),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{
				v1alpha1.LabelManagedBy: v1alpha1.ManagedBy, v1alpha1.LabelCluster: g.PDGroupName(), v1alpha1.LabelComponent: g.Component(),
			}},
			// A pod that is not ready protects nothing by staying.
			UnhealthyPodEvictionPolicy: ptr.To(policyv1.AlwaysAllow),
		},
	}
}

// SharedBudget returns the Budget of a component that several groups of a cluster
// may have members of; nil without a PDGroup to own it.
func SharedBudget(g v1alpha1.Group, s Snapshot) *policyv1.PodDisruptionBudget {
	if s.PDGroup == nil {
		return nil
	}
	members := int32(0)
	for _, other := range s.Groups {
		if other.GroupKind() == g.GroupKind() && other.GetDeletionTimestamp() == nil {
			members += other.GetReplicas()
		}
	}
	return Budget(g, metav1.OwnerReference{
		APIVersion: v1alpha1.GroupVersion().String(), Kind: v1alpha1.KindPDGroup, Name: s.PDGroup.Name, UID: s.PDGroup.UID,
	}, members)
}

// BudgetName is the name of the PodDisruptionBudget of a group's component.
func BudgetName(g v1alpha1.Group) string { return g.PDGroupName() + "-" + g.Component() }
