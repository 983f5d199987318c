package volumeclaim

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/instance/observation"
	"github.com/tidb-groups/tidb-groups/operators/instance/planning"
	"github.com/tidb-groups/tidb-groups/shared/names"
)

// List returns the claims that are the Instance's by label and not retired, and no copies.
func List(s *observation.Snapshot) []*corev1.PersistentVolumeClaim {
	all := slices.DeleteFunc(slices.Clone(s.Strays), func(c *corev1.PersistentVolumeClaim) bool {
		return names.IsCopiedClaim(c.Name, c.Labels[v1alpha1.LabelVolume], s.Instance.Name)
	})
	for _, v := range s.Volumes {
		all = append(all, v.Claim)
	}
	return slices.DeleteFunc(all, func(c *corev1.PersistentVolumeClaim) bool {
		return c == nil || c.Labels[v1alpha1.LabelInstance] != s.Instance.Name || c.DeletionTimestamp != nil || c.Annotations[v1alpha1.AnnotationRetired] != ""
	})
}

// PlanRetention deletes, retires or keeps a claim of a deleted Instance. It keeps a claim
// that replaced a lost one, because no pod of the Instance ever used it, and a claim that
// no operator made. A member that was leaving when its group was deleted has not left its
// cluster: its data is that of a deleted group.
func PlanRetention(s *observation.Snapshot, claim *corev1.PersistentVolumeClaim, p *planning.Plan) {
	instance := s.Instance
	drained := meta.IsStatusConditionTrue(instance.Status.Conditions, v1alpha1.ConditionDrained)
	left := drained || instance.Spec.Retire && !s.Ownerless
	policy, name := instance.Spec.ClaimRetention.WhenDeleted, "whenDeleted"
	if instance.Spec.Retire && left {
		policy, name = instance.Spec.ClaimRetention.WhenScaled, "whenScaled"
	}
	switch {
	case policy == v1alpha1.DeleteClaim && wasMadeByOperator(s, claim) && !isRestored(s, claim):
		p.DeleteClaims = append(p.DeleteClaims, planning.ClaimDeletion{Claim: claim, Why: "spec.claimRetention." + name + " is Delete"})
	case left:
		// A time of another retirement is no consent to this one.
		annotations := map[string]any{v1alpha1.AnnotationRetired: fmt.Sprintf("the member of Instance %s was removed", instance.Name), v1alpha1.AnnotationExpires: nil, v1alpha1.AnnotationExpiresClaim: nil}
		if keep := instance.Spec.ClaimRetention.RetainFor; keep != nil && wasMadeByOperator(s, claim) && !isRestored(s, claim) {
			annotations[v1alpha1.AnnotationExpires] = s.Now.Add(keep.Duration).UTC().Format(time.RFC3339)
			annotations[v1alpha1.AnnotationExpiresClaim] = string(claim.UID) + " " + keep.Duration.String()
		}
		body := map[string]any{"metadata": map[string]any{"annotations": annotations, "labels": map[string]any{v1alpha1.LabelRetired: "true"}}}
		p.PatchClaims = append(p.PatchClaims, planning.ClaimPatch{Claim: claim, Body: planning.WithUID(body, claim.UID), Event: "ClaimRetired", Why: "its member has left the cluster"})
	}
}
