package refusal

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/instance/observation"
	"github.com/tidb-groups/tidb-groups/operators/instance/planning"
)

// P11: what is refused names the field of the group that a user has to correct.
func TestARefusalNamesTheFieldThatItComesFrom(t *testing.T) {
	container := field.NewPath("spec", "containers").Index(0)
	for want, at := range map[string]*field.Path{
		"spec.env":              container.Child("env").Index(2).Child("name"),
		"spec.resources":        container.Child("resources", "requests"),
		"spec.volumes":          container.Child("volumeMounts").Index(3).Child("mountPath"),
		"spec.labels":           field.NewPath("metadata", "labels"),
		"spec.annotations":      field.NewPath("metadata", "annotations"),
		"spec.imagePullSecrets": field.NewPath("spec", "imagePullSecrets").Index(0),
		"spec.tolerations":      field.NewPath("spec", "tolerations").Index(0),
		"spec.overlay":          field.NewPath("spec", "dnsPolicy"),
	} {
		err := apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "basic-tikv-0", field.ErrorList{field.Invalid(at, "x", "no good")})
		i := &v1alpha1.Instance{ObjectMeta: metav1.ObjectMeta{Name: "basic-tikv-0", Namespace: "db"}}
		i.Spec.Group = v1alpha1.InstanceGroup{Kind: v1alpha1.KindTiKVGroup, Name: "basic-tikv"}
		o := FromWriteError(&observation.Snapshot{Instance: i, Template: &corev1.PodTemplateSpec{}}, v1alpha1.ReasonPodRejected, err)
		assert.Contains(t, o.Message, "such as "+want+" ", at.String())
	}
}

// Of a member that stays only labels may differ, and its data is needed.
func TestOnlyTheClaimOfAMemberThatHasLeftIsToBeDeletedForALimitRange(t *testing.T) {
	err := apierrors.NewForbidden(corev1.Resource("persistentvolumeclaims"), "data-basic-tikv-0", errors.New("maximum storage usage per PersistentVolumeClaim is 500Mi, but request is 1Gi"))
	i := &v1alpha1.Instance{ObjectMeta: metav1.ObjectMeta{Name: "basic-tikv-0", Namespace: "db"}}
	i.Spec.Group = v1alpha1.InstanceGroup{Kind: v1alpha1.KindTiKVGroup, Name: "basic-tikv"}
	change := planning.ClaimPatch{Why: "its set of labels differs from the spec", Claim: &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data-basic-tikv-0", Namespace: "db"}}}
	const raise = "a LimitRange prevents every change of claim data-basic-tikv-0, which needs one (its set of labels differs from the spec): raise the LimitRange's maximum: kubectl -n db get limitrange"
	o := FromChangeError(&observation.Snapshot{Instance: i}, change, err)
	assert.Equal(t, raise, o.Message)
	assert.Equal(t, v1alpha1.ReasonLimitRangeExceeded, o.Reason)
	i.DeletionTimestamp = &metav1.Time{}
	assert.Equal(t, raise+"; or delete the claim, if its data is not needed: kubectl -n db delete pvc data-basic-tikv-0", FromChangeError(&observation.Snapshot{Instance: i}, change, err).Message)
	change.Body = map[string]any{"spec": map[string]any{}}
	assert.Contains(t, FromChangeError(&observation.Snapshot{Instance: i}, change, err).Message, "or set storage back in")
}

// P11: Kubernetes answers the same if the StorageClass does not allow that claims grow and if there is
// none any more, and only of one that is there a field can be set.
func TestAClaimWhoseStorageClassIsGoneDoesNotGrow(t *testing.T) {
	err := apierrors.NewForbidden(corev1.Resource("persistentvolumeclaims"), "data-basic-tikv-0",
		errors.New("only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize"))
	there := map[string]*storagev1.StorageClass{"fast": {}}
	for name, c := range map[string]struct {
		class *string
		known map[string]*storagev1.StorageClass
		says  string
	}{
		"it is there":               {ptr.To("fast"), there, "set allowVolumeExpansion: true on its StorageClass"},
		"it is gone":                {ptr.To("gone"), there, "because its StorageClass gone does not exist: create it, with allowVolumeExpansion: true, if its driver can; there are: kubectl get storageclass; or set storage back in"},
		"it has none":               {ptr.To(""), there, "claim data-basic-tikv-0 has no StorageClass, and Kubernetes lets no such claim grow:"},
		"it names none":             {nil, nil, "claim data-basic-tikv-0 has no StorageClass, and Kubernetes lets no such claim grow:"},
		"they may not be looked at": {ptr.To("gone"), nil, "set allowVolumeExpansion: true on its StorageClass"},
	} {
		i := &v1alpha1.Instance{ObjectMeta: metav1.ObjectMeta{Name: "basic-tikv-0", Namespace: "db"}}
		i.Spec.Group = v1alpha1.InstanceGroup{Kind: v1alpha1.KindTiKVGroup, Name: "basic-tikv"}
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data-basic-tikv-0", Namespace: "db"}}
		claim.Spec.StorageClassName = c.class
		o := FromClaimError(&observation.Snapshot{Instance: i, Classes: c.known}, claim, err)
		assert.Equal(t, v1alpha1.ReasonClaimRejected, o.Reason, name)
		assert.Contains(t, o.Message, c.says, name)
		assert.Contains(t, o.Message, "set storage back in spec.volumes (kubectl -n db edit tikvgroup basic-tikv)", name)
	}
}
