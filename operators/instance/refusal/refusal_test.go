package refusal

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/instance/observation"
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
