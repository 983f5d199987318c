package rig

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// apart says which rule about other pods keeps a pod off a node: its own, and
// the anti-affinity of who is there already.
func (p placement) apart(pod *corev1.Pod, node *corev1.Node) string {
	if a := pod.Spec.Affinity; a != nil && a.PodAffinity != nil {
		for _, term := range a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
			// The first of pods that are to be together may be anywhere.
			if p.near(term, pod, node) == 0 && (p.anywhere(term, pod) > 0 || !parseSelector(term.LabelSelector).Matches(labels.Set(pod.Labels))) {
				return "node(s) didn't match pod affinity rules"
			}
		}
	}
	for _, term := range antiAffinity(pod) {
		if p.near(term, pod, node) > 0 {
			return "node(s) didn't match pod anti-affinity rules"
		}
	}
	for _, n := range p.neighbours {
		for _, term := range antiAffinity(n.pod) {
			if p.domain(n.node, term.TopologyKey) == domainOf(node, term.TopologyKey) && parseSelector(term.LabelSelector).Matches(labels.Set(pod.Labels)) {
				return "node(s) didn't satisfy existing pods anti-affinity rules"
			}
		}
	}
	return ""
}

func antiAffinity(pod *corev1.Pod) []corev1.PodAffinityTerm {
	if a := pod.Spec.Affinity; a != nil && a.PodAntiAffinity != nil {
		return a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	return nil
}

// near counts the pods that a term means in the domain of a node.
func (p placement) near(term corev1.PodAffinityTerm, pod *corev1.Pod, node *corev1.Node) int {
	here := domainOf(node, term.TopologyKey)
	count := 0
	for _, n := range p.means(term.LabelSelector) {
		if n.pod.UID != pod.UID && here != "" && p.domain(n.node, term.TopologyKey) == here {
			count++
		}
	}
	return count
}

// anywhere counts the pods that a term means on all nodes.
func (p placement) anywhere(term corev1.PodAffinityTerm, pod *corev1.Pod) int {
	count := 0
	for _, n := range p.means(term.LabelSelector) {
		if n.pod.UID != pod.UID {
			count++
		}
	}
	return count
}

// uneven says whether a pod on a node would break a hard spread constraint.
func (p placement) uneven(pod *corev1.Pod, node *corev1.Node) string {
	for _, c := range pod.Spec.TopologySpreadConstraints {
		if c.WhenUnsatisfiable != corev1.DoNotSchedule {
			continue
		}
		here := domainOf(node, c.TopologyKey)
		if here == "" {
			return "node(s) didn't match pod topology spread constraints (missing required label)"
		}
		counts := p.spread(c, pod)
		least := counts[here]
		for _, count := range counts {
			least = min(least, count)
		}
		if counts[here]+1-least > int(c.MaxSkew) {
			return "node(s) didn't match pod topology spread constraints"
		}
	}
	return ""
}

// spread counts the pods that a constraint means in each domain that the pod
// could go to by its own node affinity.
func (p placement) spread(c corev1.TopologySpreadConstraint, pod *corev1.Pod) map[string]int {
	out := map[string]int{}
	for i := range p.nodes {
		fits, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(&p.nodes[i])
		if domain := domainOf(&p.nodes[i], c.TopologyKey); err == nil && fits && domain != "" {
			out[domain] += 0
		}
	}
	for _, n := range p.means(c.LabelSelector) {
		domain := p.domain(n.node, c.TopologyKey)
		if _, counts := out[domain]; counts && n.pod.UID != pod.UID && n.pod.DeletionTimestamp == nil {
			out[domain]++
		}
	}
	return out
}

// score says how well a node suits the preferences of a pod.
func (p placement) score(pod *corev1.Pod, node *corev1.Node) int64 {
	const weightOfSpread = 100 // that of the highest weight of an affinity term
	score := int64(0)
	if a := pod.Spec.Affinity; a != nil && a.PodAffinity != nil {
		for _, w := range a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
			score += int64(w.Weight) * int64(p.near(w.PodAffinityTerm, pod, node))
		}
	}
	if a := pod.Spec.Affinity; a != nil && a.PodAntiAffinity != nil {
		for _, w := range a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
			score -= int64(w.Weight) * int64(p.near(w.PodAffinityTerm, pod, node))
		}
	}
	if a := pod.Spec.Affinity; a != nil && a.NodeAffinity != nil {
		terms, err := nodeaffinity.NewPreferredSchedulingTerms(a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
		if err == nil { // a term that cannot be read is no preference
			score += terms.Score(node)
		}
	}
	for _, c := range pod.Spec.TopologySpreadConstraints {
		score -= weightOfSpread * int64(p.spread(c, pod)[domainOf(node, c.TopologyKey)])
	}
	return score
}

// domain is the value of a topology key on a node; empty if there is none.
func (p placement) domain(node, key string) string { return p.labelsOf[node][key] }

func domainOf(node *corev1.Node, key string) string { return node.Labels[key] }

// parseSelector reads a selector; one that cannot be read means no pod.
func parseSelector(s *metav1.LabelSelector) labels.Selector {
	out, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return labels.Nothing()
	}
	return out
}
