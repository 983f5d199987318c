package controller

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// selectedNode is the annotation by which Kubernetes' scheduler tells for which
// node the volume of a claim was made.
const selectedNode = "volume.kubernetes.io/selected-node"

// maxNodes is how many nodes status has room for. A volume of more is not lost
// with its nodes.
const maxNodes = 64

// place is where a volume can be used.
type place struct {
	// bound says that it can be used on some nodes only.
	bound bool
	// nodes it can be used on, by name or by their host name label; nil if it is not
	// known to be tied to any.
	nodes []string
}

// placeOf returns where a volume can be used. A zone or a region is a place that
// outlives its nodes, and does not count.
func placeOf(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) place {
	out := place{bound: pv.Spec.Local != nil || pv.Spec.HostPath != nil}
	if pv.Spec.NodeAffinity == nil || pv.Spec.NodeAffinity.Required == nil {
		return out
	}
	everywhere := false
	for _, term := range pv.Spec.NodeAffinity.Required.NodeSelectorTerms {
		pins, nodes := pinned(term, claim.Annotations[selectedNode])
		out.bound = out.bound || pins
		everywhere = everywhere || len(nodes) == 0
		out.nodes = append(out.nodes, nodes...)
	}
	slices.Sort(out.nodes)
	out.nodes = slices.Compact(out.nodes)
	if everywhere || len(out.nodes) > maxNodes {
		out.nodes = nil // a node has to satisfy one term only
	}
	return out
}

// pinned returns whether a term is about single nodes, and which ones if it names
// them: by their name, by their host name, or by a label of the storage driver
// whose value is the node for which the volume was made. Several requirements
// would all have to hold; those of one are enough to know when all are gone.
func pinned(term corev1.NodeSelectorTerm, made string) (bool, []string) {
	pins := false
	for _, r := range term.MatchFields {
		pins = true
		if r.Operator == corev1.NodeSelectorOpIn {
			return true, r.Values
		}
	}
	for _, r := range term.MatchExpressions {
		named := made != "" && slices.Equal(r.Values, []string{made})
		pins = pins || r.Key == corev1.LabelHostname
		if r.Operator == corev1.NodeSelectorOpIn && (r.Key == corev1.LabelHostname || named) {
			return true, r.Values
		}
	}
	return pins, nil
}
