package component

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/names"
	"github.com/tidb-groups/tidb-groups/shared/revision"
	"github.com/tidb-groups/tidb-groups/shared/workload"
)

// NewInstance renders the Instance of a slot.
func NewInstance(g v1alpha1.Group, r Rendering, target revision.Target, slot int32) (*v1alpha1.Instance, error) {
	spec := g.GetComponentSpec()
	raw, err := encodeTemplate(r, target, slot)
	if err != nil {
		return nil, fmt.Errorf("encode the template of slot %d: %w", slot, err)
	}
	i := &v1alpha1.Instance{ObjectMeta: workload.Meta(g, names.Instance(g.GetName(), slot))}
	if owner := metav1.GetControllerOf(g); owner != nil && owner.Kind == v1alpha1.KindTidbCluster {
		i.Labels[v1alpha1.LabelUmbrella] = owner.Name // what its messages have a user edit
	}
	i.Finalizers = member.Finalizers(nil)
	i.Spec = v1alpha1.InstanceSpec{
		Group:                v1alpha1.InstanceGroup{Kind: g.GroupKind(), Name: g.GetName()},
		Slot:                 slot,
		Revision:             target.Hash,
		PodTemplate:          runtime.RawExtension{Raw: raw},
		VolumeClaimTemplates: workload.Claims(spec),
		ReadinessGates:       r.ReadinessGates,
		Suspended:            spec.Suspended,
		ClaimRetention:       spec.PersistentVolumeClaimRetentionPolicy,
		ClaimLoss:            r.ClaimLoss,
	}
	return i, nil
}

// encodeTemplate is the template of a slot's pod as JSON.
func encodeTemplate(r Rendering, target revision.Target, slot int32) ([]byte, error) {
	if r.AdjustTemplate == nil && target.EncodedTemplate != nil {
		return target.EncodedTemplate, nil
	}
	template := target.Template.DeepCopy()
	if r.AdjustTemplate != nil {
		r.AdjustTemplate(slot, template)
	}
	return json.Marshal(template)
}
