package reading

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/workload"
)

// P3: whether the data of a deleted member is back does not depend on labels that
// are not written yet.
func TestAClaimThatIsRestoredIsSeenWithoutItsLabels(t *testing.T) {
	lost := func(changes ...func(*v1alpha1.Instance)) *v1alpha1.Instance {
		i := &v1alpha1.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a-0", DeletionTimestamp: &metav1.Time{}}}
		i.Spec.VolumeClaimTemplates = []v1alpha1.VolumeClaimTemplate{{Name: "data"}}
		i.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionVolumesReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonClaimLost}}
		for _, change := range changes {
			change(i)
		}
		return i
	}
	claim := func(labels map[string]string) client.Object {
		return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "data-a-0", Labels: labels}}
	}
	for name, c := range map[string]struct {
		instance *v1alpha1.Instance
		exists   []client.Object
		seen     int
	}{
		"nothing is there":                {lost(), nil, 0},
		"it has no labels":                {lost(), []client.Object{claim(nil)}, 1},
		"it belongs to another Instance":  {lost(), []client.Object{claim(map[string]string{v1alpha1.LabelInstance: "b-0"})}, 0},
		"the member is not being deleted": {lost(func(i *v1alpha1.Instance) { i.DeletionTimestamp = nil }), []client.Object{claim(nil)}, 0},
		"its claims are not lost":         {lost(func(i *v1alpha1.Instance) { i.Status.Conditions = nil }), []client.Object{claim(nil)}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			scheme, err := operator.NewScheme()
			require.NoError(t, err)
			live := fake.NewClientBuilder().WithScheme(scheme).WithObjects(c.exists...).Build()
			s := observation.Snapshot{Instances: []*v1alpha1.Instance{c.instance}, Claims: map[string][]metav1.ObjectMeta{}}
			require.NoError(t, restoredClaims(t.Context(), live, s))
			assert.Len(t, s.Claims["a-0"], c.seen)
		})
	}
}

// P2, P3: a member whose claim is gone has no data, also if a user keeps a copy of the claim.
func TestACopyOfAClaimIsNoClaimOfTheMember(t *testing.T) {
	g := &v1alpha1.TiKVGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}}
	claim := func(name, volume string) client.Object {
		labels := map[string]string{v1alpha1.LabelInstance: "a-0", v1alpha1.LabelVolume: volume}
		maps.Copy(labels, workload.Selector(g))
		return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: name, Labels: labels, Annotations: map[string]string{v1alpha1.AnnotationRetired: "it left"},
		}}
	}
	for name, there := range map[string]bool{"data-a-0": true, "data-a-0-backup": false, "copy-of-data-a-0": false} {
		scheme, err := operator.NewScheme()
		require.NoError(t, err)
		s := observation.Snapshot{}
		require.NoError(t, ObserveClaims(t.Context(), fake.NewClientBuilder().WithScheme(scheme).WithObjects(claim(name, "data")).Build(), g, &s))
		assert.Equal(t, there, len(s.Claims["a-0"]) > 0, name)
		assert.Equal(t, there, s.RetiredSlots[0], "%s: no other member may have its slot", name)
	}
}
