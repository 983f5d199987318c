package reading

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/names"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/workload"
)

// ObserveClaims reads the claims of a group's members into a Snapshot, and which slots are
// not filled because of them.
func ObserveClaims(ctx context.Context, c client.Reader, g v1alpha1.Group, s *observation.Snapshot) error {
	var err error
	if s.Claims, err = listClaims(ctx, c, g); err == nil {
		s.RetiredSlots = retiredSlots(g, s.Claims)
	}
	return err
}

// listClaims reads the claims of a group's members. They are read by their metadata
// only, and never written. A copy that a user has made of one is none: no member starts on it.
func listClaims(ctx context.Context, c client.Reader, g v1alpha1.Group) (map[string][]metav1.ObjectMeta, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaimList"))
	if err := c.List(ctx, list, client.InNamespace(g.GetNamespace()), client.MatchingLabels(workload.Selector(g))); err != nil {
		return nil, fmt.Errorf("list claims of %s: %w", g.GetName(), err)
	}
	out := map[string][]metav1.ObjectMeta{}
	for _, claim := range list.Items {
		instance := claim.Labels[v1alpha1.LabelInstance]
		if names.IsCopiedClaim(claim.Name, claim.Labels[v1alpha1.LabelVolume], instance) {
			continue
		}
		out[instance] = append(out[instance], claim.ObjectMeta)
	}
	return out, nil
}

// restoredClaims adds claims that were restored in place of the lost ones of Instances
// that are being deleted: whether the data is back decides what happens to the member, and
// a restored claim may not carry our labels yet.
func restoredClaims(ctx context.Context, live client.Reader, s observation.Snapshot) error {
	for _, i := range s.Instances {
		if i.DeletionTimestamp == nil || !member.IsClaimLost(i) {
			continue
		}
		for _, t := range i.Spec.VolumeClaimTemplates {
			name := names.Claim(t.Name, i.Name)
			if slices.ContainsFunc(s.Claims[i.Name], func(c metav1.ObjectMeta) bool { return c.Name == name }) {
				continue
			}
			claim, err := LiveClaim(ctx, live, i, t.Name)
			switch {
			case err != nil:
				return err
			case claim != nil && (claim.Labels[v1alpha1.LabelInstance] == "" || claim.Labels[v1alpha1.LabelInstance] == i.Name):
				s.Claims[i.Name] = append(s.Claims[i.Name], claim.ObjectMeta)
			}
		}
	}
	return nil
}

// LiveClaim reads the metadata of an Instance's claim of a volume from the API server,
// nil if there is none.
func LiveClaim(ctx context.Context, live client.Reader, i *v1alpha1.Instance, volume string) (*metav1.PartialObjectMetadata, error) {
	name := names.Claim(volume, i.Name)
	claim := &metav1.PartialObjectMetadata{}
	claim.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"))
	err := live.Get(ctx, client.ObjectKey{Namespace: i.Namespace, Name: name}, claim)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get claim %s: %w", name, err)
	}
	return claim, nil
}

// retiredSlots returns which slots have a claim of a former member.
func retiredSlots(g v1alpha1.Group, claims map[string][]metav1.ObjectMeta) map[int32]bool {
	out := map[int32]bool{}
	for instance, list := range claims {
		slot, ok := names.Slot(g.GetName(), instance)
		if ok && slices.ContainsFunc(list, func(c metav1.ObjectMeta) bool { return c.Annotations[v1alpha1.AnnotationRetired] != "" }) {
			out[slot] = true
		}
	}
	return out
}
