package group

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/step"
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

// WriteMembers writes the members' part of the Instances' status.
func WriteMembers(ctx context.Context, env operator.Env, members []Member) step.Outcome {
	var work []func() step.Outcome
	for _, m := range members {
		work = append(work, func() step.Outcome {
			switch err := env.Status.WriteMember(ctx, m.Instance, m.Status, m.Conditions); {
			case apierrors.IsConflict(err):
				return step.Conflict(v1alpha1.ReasonProgressing, "Instance "+m.Instance.Name+" has changed meanwhile")
			case err != nil:
				return step.Fail(v1alpha1.ReasonRequestFailed, err)
			}
			return step.Done()
		})
	}
	return step.Parallel(work...)
}
