package observation

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// selectedNode is the annotation by which Kubernetes' scheduler tells for which
// node the volume of a claim was made.
const selectedNode = "volume.kubernetes.io/selected-node"

// maxNodes is how many nodes status has room for. A volume of more is not lost
// with its nodes.
const maxNodes = 64

// Place is where a volume can be used.
type Place struct {
	// Bound says that it can be used on some nodes only.
	Bound bool
	// Nodes it can be used on, by name or by their host name label; nil if it is not
	// known to be tied to any.
	Nodes []string
	// NodeSelectors of the nodes that it can be used on, of which one has to match; nil if
	// it is not known to be tied to any labels.
	NodeSelectors []string
}

// PlaceOf returns where a volume can be used. A zone or a region is a place that
// outlives its nodes, and no node that it is bound to.
func PlaceOf(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) Place {
	out := Place{Bound: pv.Spec.Local != nil || pv.Spec.HostPath != nil}
	if pv.Spec.NodeAffinity == nil || pv.Spec.NodeAffinity.Required == nil {
		return out
	}
	everywhere, said := false, true
	for _, term := range pv.Spec.NodeAffinity.Required.NodeSelectorTerms {
		pins, nodes := pinnedNodes(term, claim.Annotations[selectedNode])
		out.Bound = out.Bound || pins
		everywhere = everywhere || len(nodes) == 0
		out.Nodes = append(out.Nodes, nodes...)
		selector, ok := selectorOf(term)
		said = said && ok
		out.NodeSelectors = append(out.NodeSelectors, selector)
	}
	slices.Sort(out.NodeSelectors)
	out.NodeSelectors = slices.Compact(out.NodeSelectors)
	if out.Bound || !said || len(out.NodeSelectors) > maxNodes {
		out.NodeSelectors = nil
	}
	slices.Sort(out.Nodes)
	out.Nodes = slices.Compact(out.Nodes)
	if everywhere || len(out.Nodes) > maxNodes {
		out.Nodes = nil // a node has to satisfy one term only
	}
	return out
}

// pinnedNodes returns whether a term is about single nodes, and which ones if it names
// them: by their name, by their host name, or by a label of the storage driver
// whose value is the node for which the volume was made. Several requirements
// would all have to hold; those of one are enough to know when all are gone.
func pinnedNodes(term corev1.NodeSelectorTerm, made string) (bool, []string) {
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

// selectorOf writes a term as a label selector, if that can say it.
func selectorOf(term corev1.NodeSelectorTerm) (string, bool) {
	selector := labels.NewSelector()
	for _, r := range term.MatchExpressions {
		one, err := labels.NewRequirement(r.Key, selection.In, r.Values)
		if err != nil || r.Operator != corev1.NodeSelectorOpIn {
			return "", false
		}
		selector = selector.Add(*one)
	}
	return selector.String(), !selector.Empty() && len(term.MatchFields) == 0
}

// IndexPinnedVolume finds a volume that can be used on some nodes only; -1 if there is none.
func IndexPinnedVolume(s *Snapshot) int {
	return slices.IndexFunc(s.Volumes, func(v Volume) bool { return len(v.Place.Nodes) > 0 })
}

// SaidPlace returns where a PersistentVolume can be used by what an Instance's status says of
// the volume that has it, and whether it says so.
func SaidPlace(instance *v1alpha1.Instance, volume, pv string) (Place, bool) {
	for _, v := range instance.Status.Volumes {
		if v.Name == volume && v.PersistentVolume == pv {
			return Place{Bound: v.NodeBound, Nodes: v.Nodes, NodeSelectors: v.NodeSelectors}, true
		}
	}
	return Place{}, false
}
