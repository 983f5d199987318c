package controller

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// KV-22. The second part is an upgrade: the version before did not note nodes.
func TestStatusNamesTheNodesThatAVolumeIsTiedTo(t *testing.T) {
	s := begin(t)
	pod := s.pod()
	pv := s.volume(corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/mnt/a"}}, corev1.LabelHostname, "n1")
	known := func(i *v1alpha1.Instance) bool {
		v := i.Status.Volumes[0]
		return v.PersistentVolume == pv.Name && v.NodeBound && len(v.Nodes) == 1 && v.Nodes[0] == "n1"
	}
	s.bind()
	s.eventually("the volume's node is known", known)

	forget := client.RawPatch(types.JSONPatchType, []byte(`[{"op":"remove","path":"/status/volumes/0/nodes"}]`))
	require.NoError(t, api.Status().Patch(t.Context(), s.instance(), forget))
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/1 nodes are available: 1 node(s) didn't match PersistentVolume's node affinity."}}
	require.NoError(t, api.Status().Update(t.Context(), pod))
	s.reason(v1alpha1.ConditionPodReady, v1alpha1.ReasonPodUnschedulable)
	s.eventually("the volume's node is known again", known)
}

// KV-15. Also after an upgrade of the operator: the version before did not note zones.
func TestStatusTellsTheZoneOfAVolume(t *testing.T) {
	s := begin(t)
	s.pod()
	pv := s.volume(corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "disks.example.com", VolumeHandle: "1"}}, corev1.LabelTopologyZone, "a")
	known := func(i *v1alpha1.Instance) bool {
		v := i.Status.Volumes[0]
		return v.PersistentVolume == pv.Name && !v.NodeBound && len(v.NodeSelectors) == 1 && v.NodeSelectors[0] == "topology.kubernetes.io/zone in (a)"
	}
	s.bind()
	s.eventually("the volume's zone is known", known)

	older := client.RawPatch(types.JSONPatchType, []byte(`[{"op":"remove","path":"/status/volumes/0/nodeSelectors"},{"op":"add","path":"/status/operatorVersion","value":"v0"}]`))
	require.NoError(t, api.Status().Patch(t.Context(), s.instance(), older))
	s.eventually("the volume's zone is known again", known)
}

// volume makes the volume of the claim, which can be used on nodes with a label alone.
func (s stage) volume(source corev1.PersistentVolumeSource, label, value string) *corev1.PersistentVolume {
	s.Helper()
	pvc := s.pvc()
	nodes := corev1.NodeSelectorRequirement{Key: label, Operator: corev1.NodeSelectorOpIn, Values: []string{value}}
	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pv-" + string(pvc.UID)},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}, AccessModes: pvc.Spec.AccessModes, StorageClassName: "fast",
			PersistentVolumeSource: source,
			NodeAffinity:           &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{nodes}}}}},
		},
	}
	s.forAll(pv)
	return pv
}
