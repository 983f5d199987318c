package reading

import (
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
)

// KV-22.
func TestAVolumeIsLostWithAllTheNodesThatItCanBeUsedOn(t *testing.T) {
	node := func(name, host string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: host}}}
	}
	far, near := v1alpha1.VolumeStatus{Name: "logs", PersistentVolume: "pv"}, func(nodes ...string) v1alpha1.VolumeStatus {
		return v1alpha1.VolumeStatus{Name: "data", PersistentVolume: "pv", NodeBound: true, Nodes: nodes}
	}
	for name, c := range map[string]struct {
		pod     string
		volumes []v1alpha1.VolumeStatus
		claim   string
		lost    string
	}{
		"its node is gone":                             {v1alpha1.ReasonPodUnschedulable, []v1alpha1.VolumeStatus{far, near("gone")}, "", "gone"},
		"both of its nodes are":                        {v1alpha1.ReasonPodUnschedulable, []v1alpha1.VolumeStatus{near("away", "gone")}, "", "away, gone"},
		"one of two is left":                           {v1alpha1.ReasonPodUnschedulable, []v1alpha1.VolumeStatus{near("gone", "n1")}, "", ""},
		"its node is there under another name":         {v1alpha1.ReasonPodUnschedulable, []v1alpha1.VolumeStatus{near("host-2")}, "", ""},
		"its node is gone, and the pod not yet":        {v1alpha1.ReasonPodNotReady, []v1alpha1.VolumeStatus{near("gone")}, "", ""},
		"a network volume, once made for a node":       {v1alpha1.ReasonPodUnschedulable, []v1alpha1.VolumeStatus{far}, "gone", ""},
		"its nodes are unknown":                        {v1alpha1.ReasonPodUnschedulable, []v1alpha1.VolumeStatus{{Name: "data", NodeBound: true}}, "gone", ""},
		"a volume of a node that is there, and others": {v1alpha1.ReasonPodUnschedulable, []v1alpha1.VolumeStatus{near("n1"), far}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			i := &v1alpha1.Instance{ObjectMeta: metav1.ObjectMeta{Name: "a-0"}}
			i.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionPodReady, Status: metav1.ConditionFalse, Reason: c.pod}}
			i.Status.Volumes = c.volumes
			s := observation.Snapshot{Instances: []*v1alpha1.Instance{i}, Claims: map[string][]metav1.ObjectMeta{
				"a-0": {{Name: "data-a-0", Annotations: map[string]string{"volume.kubernetes.io/selected-node": c.claim}}},
			}}
			scheme, err := operator.NewScheme()
			require.NoError(t, err)
			var nodes client.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(node("n1", "n1"), node("n2", "host-2")).Build()
			got, err := lostNodes(t.Context(), operator.Env{Client: nodes, Live: nodes}, s)
			require.NoError(t, err)
			assert.Equal(t, c.lost, got["a-0"])
		})
	}
}
