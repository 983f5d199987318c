package groupstatus

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// Member is what a group's operator reports of one Instance.
type Member struct {
	// Instance that the report is about.
	Instance *v1alpha1.Instance
	// Status of the member, nil if it is not known.
	Status *v1alpha1.MemberStatus
	// Conditions Joined, Healthy and Drained, those that are known.
	Conditions []metav1.Condition
}
