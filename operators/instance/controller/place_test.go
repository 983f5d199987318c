package controller

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

func requirement(key string, values ...string) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
}

func labelled(all ...corev1.NodeSelectorRequirement) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchExpressions: all}
}

// KV-22. The keys are those of Kubernetes and of storage drivers' documentation.
func TestTheNodesOfAVolumeAreKnownOnlyIfItIsTiedToThem(t *testing.T) {
	local := func(v *corev1.PersistentVolume) { v.Spec.Local = &corev1.LocalVolumeSource{Path: "/mnt"} }
	path := func(v *corev1.PersistentVolume) { v.Spec.HostPath = &corev1.HostPathVolumeSource{Path: "/mnt"} }
	host := func(nodes ...string) corev1.NodeSelectorTerm {
		return labelled(requirement(corev1.LabelHostname, nodes...))
	}
	var many []string
	for n := range maxNodes + 1 {
		many = append(many, fmt.Sprint("n", n))
	}
	for name, c := range map[string]struct {
		source func(*corev1.PersistentVolume)
		terms  []corev1.NodeSelectorTerm
		made   string
		want   place
	}{
		"a network volume":              {nil, nil, "n1", place{}},
		"a volume of a zone":            {nil, []corev1.NodeSelectorTerm{labelled(requirement(corev1.LabelTopologyZone, "a"))}, "n1", place{}},
		"a path of nobody knows where":  {path, nil, "", place{bound: true}},
		"a static local volume":         {local, []corev1.NodeSelectorTerm{host("n1")}, "", place{bound: true, nodes: []string{"n1"}}},
		"a disk of two nodes":           {nil, []corev1.NodeSelectorTerm{host("n2", "n1")}, "", place{bound: true, nodes: []string{"n1", "n2"}}},
		"one of two nodes, in two ways": {nil, []corev1.NodeSelectorTerm{host("n2"), host("n1"), host("n2")}, "", place{bound: true, nodes: []string{"n1", "n2"}}},
		"of a node, or of a zone":       {nil, []corev1.NodeSelectorTerm{host("n1"), labelled(requirement(corev1.LabelTopologyZone, "a"))}, "", place{bound: true}},
		"of a node in a zone":           {nil, []corev1.NodeSelectorTerm{labelled(requirement(corev1.LabelTopologyZone, "a"), requirement(corev1.LabelHostname, "n1"))}, "", place{bound: true, nodes: []string{"n1"}}},
		"of all nodes but one": {nil, []corev1.NodeSelectorTerm{labelled(corev1.NodeSelectorRequirement{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpNotIn, Values: []string{"n1"}})},
			"", place{bound: true}},
		"of a node by its name":                 {nil, []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{requirement(metav1.ObjectNameField, "n1")}}}, "", place{bound: true, nodes: []string{"n1"}}},
		"of the driver's label for the node":    {nil, []corev1.NodeSelectorTerm{labelled(requirement("topology.topolvm.io/node", "n1"))}, "n1", place{bound: true, nodes: []string{"n1"}}},
		"of such a label, and not said for who": {nil, []corev1.NodeSelectorTerm{labelled(requirement("topology.topolvm.io/node", "n1"))}, "", place{}},
		"of a zone, made for a node":            {nil, []corev1.NodeSelectorTerm{labelled(requirement("topology.ebs.csi.aws.com/zone", "a"))}, "n1", place{}},
		"of more nodes than status has room":    {nil, []corev1.NodeSelectorTerm{host(many...)}, "", place{bound: true}},
	} {
		t.Run(name, func(t *testing.T) {
			pv, claim := &corev1.PersistentVolume{}, &corev1.PersistentVolumeClaim{}
			if c.source != nil {
				c.source(pv)
			}
			if c.terms != nil {
				pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: c.terms}}
			}
			if c.made != "" {
				claim.Annotations = map[string]string{selectedNode: c.made}
			}
			assert.Equal(t, c.want, placeOf(pv, claim))
		})
	}
}

// KV-22. The second part is an upgrade: the version before did not note nodes.
func TestStatusSaysWhichNodesAVolumeIsTiedTo(t *testing.T) {
	s := begin(t)
	pod := s.pod()
	pvc := s.pvc()
	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pv-" + string(pvc.UID)},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}, AccessModes: pvc.Spec.AccessModes, StorageClassName: "fast",
			PersistentVolumeSource: corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/mnt/a"}},
			NodeAffinity:           &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{labelled(requirement(corev1.LabelHostname, "n1"))}}},
		},
	}
	s.forAll(pv)
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
