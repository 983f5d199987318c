package observation

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
		want   Place
	}{
		"a network volume":              {nil, nil, "n1", Place{}},
		"a volume of a zone":            {nil, []corev1.NodeSelectorTerm{labelled(requirement(corev1.LabelTopologyZone, "a"))}, "n1", Place{NodeSelectors: []string{"topology.kubernetes.io/zone in (a)"}}},
		"a volume of two zones":         {nil, []corev1.NodeSelectorTerm{labelled(requirement(corev1.LabelTopologyZone, "b")), labelled(requirement(corev1.LabelTopologyZone, "a"))}, "n1", Place{NodeSelectors: []string{"topology.kubernetes.io/zone in (a)", "topology.kubernetes.io/zone in (b)"}}},
		"a path on an unknown node":     {path, nil, "", Place{Bound: true}},
		"a static local volume":         {local, []corev1.NodeSelectorTerm{host("n1")}, "", Place{Bound: true, Nodes: []string{"n1"}}},
		"a disk of two nodes":           {nil, []corev1.NodeSelectorTerm{host("n2", "n1")}, "", Place{Bound: true, Nodes: []string{"n1", "n2"}}},
		"one of two nodes, in two ways": {nil, []corev1.NodeSelectorTerm{host("n2"), host("n1"), host("n2")}, "", Place{Bound: true, Nodes: []string{"n1", "n2"}}},
		"of a node, or of a zone":       {nil, []corev1.NodeSelectorTerm{host("n1"), labelled(requirement(corev1.LabelTopologyZone, "a"))}, "", Place{Bound: true}},
		"of a node in a zone":           {nil, []corev1.NodeSelectorTerm{labelled(requirement(corev1.LabelTopologyZone, "a"), requirement(corev1.LabelHostname, "n1"))}, "", Place{Bound: true, Nodes: []string{"n1"}}},
		"of all nodes but one": {nil, []corev1.NodeSelectorTerm{labelled(corev1.NodeSelectorRequirement{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpNotIn, Values: []string{"n1"}})},
			"", Place{Bound: true}},
		"of a node by its name":                 {nil, []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{requirement(metav1.ObjectNameField, "n1")}}}, "", Place{Bound: true, Nodes: []string{"n1"}}},
		"of the driver's label for the node":    {nil, []corev1.NodeSelectorTerm{labelled(requirement("topology.topolvm.io/node", "n1"))}, "n1", Place{Bound: true, Nodes: []string{"n1"}}},
		"of such a label, and not said for who": {nil, []corev1.NodeSelectorTerm{labelled(requirement("topology.topolvm.io/node", "n1"))}, "", Place{NodeSelectors: []string{"topology.topolvm.io/node in (n1)"}}},
		"of a zone, made for a node":            {nil, []corev1.NodeSelectorTerm{labelled(requirement("topology.ebs.csi.aws.com/zone", "a"))}, "n1", Place{NodeSelectors: []string{"topology.ebs.csi.aws.com/zone in (a)"}}},
		"of a zone in a region":                 {nil, []corev1.NodeSelectorTerm{labelled(requirement(corev1.LabelTopologyZone, "a"), requirement(corev1.LabelTopologyRegion, "r"))}, "n1", Place{NodeSelectors: []string{"topology.kubernetes.io/region in (r),topology.kubernetes.io/zone in (a)"}}},
		"of the disks that have no zone":        {nil, []corev1.NodeSelectorTerm{labelled(requirement("topology.disk.csi.azure.com/zone", ""))}, "n1", Place{NodeSelectors: []string{"topology.disk.csi.azure.com/zone in ()"}}},
		"of a zone, or of what we cannot say":   {nil, []corev1.NodeSelectorTerm{labelled(requirement(corev1.LabelTopologyZone, "a")), labelled(corev1.NodeSelectorRequirement{Key: "disks", Operator: corev1.NodeSelectorOpGt, Values: []string{"2"}})}, "n1", Place{}},
		"of more nodes than status has room":    {nil, []corev1.NodeSelectorTerm{host(many...)}, "", Place{Bound: true}},
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
			assert.Equal(t, c.want, PlaceOf(pv, claim))
		})
	}
}
