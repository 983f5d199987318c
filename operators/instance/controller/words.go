package controller

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// DropWords empties what only people read while a pod starts: the reasons that its start passes
// through, its node, its address, and its claims until they are bound.
func (p *part) DropWords() {
	p.Reason, p.Message, p.PodIP, p.NodeName = "", "", "", ""
	p.Conditions = slices.Clone(p.Conditions)
	for i := range p.Conditions {
		dropWords(&p.Conditions[i])
	}
	p.Volumes = slices.Clone(p.Volumes)
	for i := range p.Volumes {
		if v := &p.Volumes[i]; v.Phase != string(corev1.ClaimLost) {
			v.Phase, v.PersistentVolume, v.Capacity = "", "", nil
		}
	}
}

func dropWords(c *metav1.Condition) {
	c.Message = ""
	switch c.Reason {
	case v1alpha1.ReasonPodMissing, v1alpha1.ReasonPodPending, v1alpha1.ReasonPodNotReady, v1alpha1.ReasonGatesPending, v1alpha1.ReasonProgressing:
		c.Reason = ""
	case v1alpha1.ReasonClaimPending, v1alpha1.ReasonVolumesReady:
		c.Reason = ""
		if c.Type == v1alpha1.ConditionVolumesReady {
			c.Status, c.LastTransitionTime = "", metav1.Time{}
		}
	}
}
