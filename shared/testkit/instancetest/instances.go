package instancetest

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/member"
)

// Instance is an Instance of group kv that its database holds.
func Instance(slot int32, uid string) *v1alpha1.Instance {
	g := &v1alpha1.TiKVGroup{}
	i := &v1alpha1.Instance{ObjectMeta: metav1.ObjectMeta{
		Name: fmt.Sprintf("kv-%d", slot), UID: types.UID(uid), Finalizers: []string{v1alpha1.FinalizerMember},
		Labels: map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy, v1alpha1.LabelComponent: g.Component()},
	}}
	i.Spec.Slot, i.Spec.Group = slot, v1alpha1.InstanceGroup{Kind: v1alpha1.KindTiKVGroup, Name: "kv"}
	return i
}

// MarkDeleted marks an Instance as being deleted.
func MarkDeleted(i *v1alpha1.Instance) *v1alpha1.Instance {
	i.DeletionTimestamp = ptr.To(metav1.Unix(1800000000, 0))
	return i
}

// MarkRestarting writes on an Instance that its member is being restarted.
func MarkRestarting(i *v1alpha1.Instance) *v1alpha1.Instance {
	i.Annotations = map[string]string{v1alpha1.AnnotationDisruption: string(member.Restart)}
	return i
}

// ToReplace is a member that a user wants replaced.
func ToReplace(i *v1alpha1.Instance) *v1alpha1.Instance {
	i.Annotations = map[string]string{v1alpha1.AnnotationReplace: ""}
	return i
}

// WithVolume is a settled member of group kv with a volume of a class and size.
func WithVolume(slot int32, class, size string) *v1alpha1.Instance {
	i, has := Instance(slot, "uid"), resource.MustParse(size)
	i.Spec.Revision, i.Status.Revision, i.Status.PodUID = "r", "r", "pod"
	i.Spec.VolumeClaimTemplates = []v1alpha1.VolumeClaimTemplate{{Name: "data", Storage: has}}
	i.Status.Volumes = []v1alpha1.VolumeStatus{{Name: "data", StorageClassName: class, Requested: &has, Capacity: &has}}
	i.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue}}
	return i
}

// NotReady has an Instance say that it is not Ready.
func NotReady(i *v1alpha1.Instance) *v1alpha1.Instance {
	i.Status.Conditions[0].Status = metav1.ConditionFalse
	return i
}

// MarkRetiring has an Instance leave for good.
func MarkRetiring(i *v1alpha1.Instance) *v1alpha1.Instance {
	i.Spec.Retire = true
	return i
}
