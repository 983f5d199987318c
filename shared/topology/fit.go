package topology

import (
	"maps"
	"slices"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	scheduling "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// Fit tells on which nodes pods of a template may start. How much room there is it does not know.
type Fit struct {
	template *corev1.PodTemplateSpec
	affinity nodeaffinity.RequiredNodeAffinity
}

// NewFit returns the Fit of a template.
func NewFit(template *corev1.PodTemplateSpec) Fit {
	return Fit{template, nodeaffinity.GetRequiredNodeAffinity(&corev1.Pod{Spec: template.Spec})}
}

// Takes reports whether a node has the labels that the pods ask for, and no taint that keeps them off.
func (f Fit) Takes(node *corev1.Node) bool {
	if fits, err := f.affinity.Match(node); err != nil || !fits {
		return false
	}
	keepsOff := func(t *corev1.Taint) bool { return t.Effect != corev1.TaintEffectPreferNoSchedule }
	_, off := scheduling.FindMatchingUntoleratedTaint(logr.Discard(), node.Spec.Taints, f.template.Spec.Tolerations, keepsOff, false)
	return !off
}

// TakesBeside is Takes for a pod whose fellow members are on some of all nodes, by their names.
func (f Fit) TakesBeside(node *corev1.Node, all []corev1.Node, fellows []string) bool {
	return f.Takes(node) && f.staysApart(node, all, fellows) && f.staysEven(node, all, fellows)
}

// staysApart reports whether no fellow is where the template demands that there is none.
func (f Fit) staysApart(node *corev1.Node, all []corev1.Node, fellows []string) bool {
	affinity := f.template.Spec.Affinity
	if affinity == nil || affinity.PodAntiAffinity == nil {
		return true
	}
	return !slices.ContainsFunc(affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution, func(t corev1.PodAffinityTerm) bool {
		place, named := node.Labels[t.TopologyKey]
		return named && f.selectsFellows(t.LabelSelector) && countFellows(t.TopologyKey, all, fellows)[place] > 0
	})
}

// staysEven reports whether the pods lie as evenly as the template demands with one more on a node.
// As the scheduler does by default, it counts the places of cordoned nodes as well.
func (f Fit) staysEven(node *corev1.Node, all []corev1.Node, fellows []string) bool {
	return !slices.ContainsFunc(f.template.Spec.TopologySpreadConstraints, func(c corev1.TopologySpreadConstraint) bool {
		if c.WhenUnsatisfiable != corev1.DoNotSchedule || !f.selectsFellows(c.LabelSelector) {
			return false
		}
		asked := slices.DeleteFunc(slices.Clone(all), func(n corev1.Node) bool {
			fits, err := f.affinity.Match(&n)
			return err != nil || !fits
		})
		count := countFellows(c.TopologyKey, asked, fellows)
		place, named := node.Labels[c.TopologyKey]
		return !named || count[place]+1-slices.Min(slices.Collect(maps.Values(count))) > c.MaxSkew
	})
}

// countFellows counts fellows by the values that a label of nodes has; also those that none has.
func countFellows(key string, nodes []corev1.Node, fellows []string) map[string]int32 {
	out := map[string]int32{}
	for n := range nodes {
		place, named := nodes[n].Labels[key]
		if !named {
			continue
		}
		out[place] += 0
		for _, at := range fellows {
			if at == nodes[n].Name {
				out[place]++
			}
		}
	}
	return out
}

// selectsFellows reports whether a selector means pods of the template itself.
func (f Fit) selectsFellows(selector *metav1.LabelSelector) bool {
	means, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && means.Matches(labels.Set(f.template.Labels))
}
