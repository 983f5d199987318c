package rig

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	scheduling "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// neighbour is a pod that is on a node, or about to be.
type neighbour struct {
	pod  *corev1.Pod
	node string
}

// placement is what a pod is placed by: the nodes, who is on them, and where its
// volumes are.
type placement struct {
	nodes      []corev1.Node
	neighbours []neighbour
	// volumes are the node affinities of the pod's bound volumes.
	volumes []*corev1.NodeSelector

	// What pick looks up many times for one pod, where neighbours may be thousands.
	labelsOf map[string]labels.Set
	at       map[string][]*corev1.Pod
	meant    map[string][]neighbour
}

// indexed returns a placement that pick can look things up in.
func (p placement) indexed() placement {
	p.labelsOf, p.at, p.meant = map[string]labels.Set{}, map[string][]*corev1.Pod{}, map[string][]neighbour{}
	for i := range p.nodes {
		p.labelsOf[p.nodes[i].Name] = p.nodes[i].Labels
	}
	for _, n := range p.neighbours {
		p.at[n.node] = append(p.at[n.node], n.pod)
	}
	return p
}

// means returns the neighbours that a selector means.
func (p placement) means(s *metav1.LabelSelector) []neighbour {
	means := parseSelector(s)
	key := means.String()
	if out, known := p.meant[key]; known {
		return out
	}
	var out []neighbour
	for _, n := range p.neighbours {
		if means.Matches(labels.Set(n.pod.Labels)) {
			out = append(out, n)
		}
	}
	p.meant[key] = out
	return out
}

// pick takes the fitting node with the best score, or says why none fits. Of
// equal nodes it takes the one with the fewest pods, and then the first.
func (p placement) pick(pod *corev1.Pod) (node, why string) {
	p = p.indexed()
	reasons := map[string]int{}
	best, fewest := int64(0), 0
	for i := range p.nodes {
		if reason := p.unfit(pod, &p.nodes[i]); reason != "" {
			reasons[reason]++
			continue
		}
		score, have := p.score(pod, &p.nodes[i]), len(p.at[p.nodes[i].Name])
		if node == "" || score > best || score == best && have < fewest {
			node, best, fewest = p.nodes[i].Name, score, have
		}
	}
	if node != "" {
		return node, ""
	}
	var parts []string
	for _, reason := range slices.Sorted(maps.Keys(reasons)) {
		parts = append(parts, fmt.Sprintf("%d %s", reasons[reason], reason))
	}
	return "", fmt.Sprintf("0/%d nodes are available: %s.", len(p.nodes), strings.Join(parts, ", "))
}

// unfit says why a pod does not fit on a node, in the scheduler's words.
func (p placement) unfit(pod *corev1.Pod, node *corev1.Node) string {
	// A selector that cannot be read fits no node, as with the scheduler.
	if fits, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(node); err != nil || !fits {
		return "node(s) didn't match Pod's node affinity/selector"
	}
	cordon := corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}
	if node.Spec.Unschedulable && !scheduling.TolerationsTolerateTaint(logr.Discard(), pod.Spec.Tolerations, &cordon, false) {
		return "node(s) were unschedulable"
	}
	keepsOff := func(t *corev1.Taint) bool {
		return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
	}
	if taint, found := scheduling.FindMatchingUntoleratedTaint(logr.Discard(), node.Spec.Taints, pod.Spec.Tolerations, keepsOff, false); found {
		return fmt.Sprintf("node(s) had untolerated taint {%s: %s}", taint.Key, taint.Value)
	}
	if reason := p.full(pod, node); reason != "" {
		return reason
	}
	for _, volume := range p.volumes {
		fits, err := nodeaffinity.NewLazyErrorNodeSelector(volume).Match(node)
		if err != nil || !fits {
			return "node(s) didn't match PersistentVolume's node affinity"
		}
	}
	if reason := p.apart(pod, node); reason != "" {
		return reason
	}
	return p.uneven(pod, node)
}

// full says which resource of a node does not suffice for one pod more.
func (p placement) full(pod *corev1.Pod, node *corev1.Node) string {
	for _, resource := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		left := node.Status.Allocatable[resource]
		for _, each := range append(slices.Clip(p.at[node.Name]), pod) {
			for i := range each.Spec.Containers {
				left.Sub(each.Spec.Containers[i].Resources.Requests[resource])
			}
		}
		if left.Sign() < 0 {
			return "Insufficient " + string(resource)
		}
	}
	return ""
}
