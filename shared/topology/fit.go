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
	"k8s.io/utils/ptr"
)

// Fit tells on which nodes pods of a template may start. Of the room there it knows what fellows leave.
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

// ToleratesCordon reports whether the pods may start on a cordoned node as well, which is how the scheduler
// takes a toleration of its taint.
func (f Fit) ToleratesCordon() bool {
	cordon := corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}
	return scheduling.TolerationsTolerateTaint(logr.Discard(), f.template.Spec.Tolerations, &cordon, false)
}

// Fellow is a pod beside which others come to a node: by which labels affinities select it.
type Fellow struct {
	// Node is the name of its node, empty for none.
	Node string
	// Labels of the pod.
	Labels map[string]string
	// Ports of the node that the pod has.
	Ports []int32
	// Requests of the pod.
	Requests corev1.ResourceList
}

// SumRequests adds up the processor time and memory that a pod of a template asks for. Where only a limit is
// set, Kubernetes asks for as much.
func SumRequests(template *corev1.PodTemplateSpec) corev1.ResourceList {
	out := corev1.ResourceList{}
	for _, c := range template.Spec.Containers {
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			asked, said := c.Resources.Requests[name]
			if !said {
				asked = c.Resources.Limits[name]
			}
			total := out[name]
			total.Add(asked)
			out[name] = total
		}
	}
	return out
}

// NodePorts lists the ports of its node that a pod of a template gets: in the network of the node all of its own.
func NodePorts(template *corev1.PodTemplateSpec) []int32 {
	var out []int32
	for _, c := range template.Spec.Containers {
		for _, p := range c.Ports {
			switch {
			case p.HostPort > 0:
				out = append(out, p.HostPort)
			case template.Spec.HostNetwork:
				out = append(out, p.ContainerPort)
			}
		}
	}
	return out
}

// TakesBeside reports whether one of the open nodes takes a pod whose fellows are on some of all nodes.
func (f Fit) TakesBeside(open, all []corev1.Node, fellows []Fellow) bool {
	bounds := slices.Concat(f.boundsApart(all, fellows), f.boundsEven(all, fellows))
	return slices.ContainsFunc(open, func(n corev1.Node) bool {
		return f.Takes(&n) && f.hasPorts(&n, fellows) && f.hasRoom(&n, fellows) && !slices.ContainsFunc(bounds, func(b bound) bool { return b.excludes(&n) })
	})
}

// hasPorts reports whether no fellow on a node has a port of the node that the pods want.
func (f Fit) hasPorts(node *corev1.Node, fellows []Fellow) bool {
	wanted := NodePorts(f.template)
	return !slices.ContainsFunc(fellows, func(other Fellow) bool {
		return other.Node == node.Name && slices.ContainsFunc(other.Ports, func(p int32) bool { return slices.Contains(wanted, p) })
	})
}

// hasRoom reports whether a node has room for one of the pods beside its fellows, as far as these tell: what
// else runs there is not known. A node that does not say how large it is has.
func (f Fit) hasRoom(node *corev1.Node, fellows []Fellow) bool {
	for name, wanted := range SumRequests(f.template) {
		allocatable, said := node.Status.Allocatable[name]
		left := allocatable.DeepCopy() // of a large number a copy shares the digits
		left.Sub(wanted)
		for _, other := range fellows {
			if other.Node == node.Name {
				left.Sub(other.Requests[name])
			}
		}
		if said && left.Sign() < 0 {
			return false
		}
	}
	return true
}

// bound is how many fellows there may be at most where one more pod comes to.
type bound struct {
	// key of the label of nodes by whose values fellows are counted.
	key   string
	count map[string]int32
	most  int32
	// everywhere says that a node without the label takes none.
	everywhere bool
}

func (b bound) excludes(node *corev1.Node) bool {
	place, named := node.Labels[b.key]
	if !named {
		return b.everywhere
	}
	return b.count[place] > b.most
}

// boundsApart are those where the template demands that there is no fellow.
func (f Fit) boundsApart(all []corev1.Node, fellows []Fellow) []bound {
	affinity := f.template.Spec.Affinity
	if affinity == nil || affinity.PodAntiAffinity == nil {
		return nil
	}
	var out []bound
	for _, t := range affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
		out = append(out, bound{key: t.TopologyKey, count: countFellows(t.TopologyKey, all, selectFellows(t.LabelSelector, fellows))})
	}
	return out
}

// boundsEven are those with which the pods lie as evenly as the template demands. As the scheduler does by
// default, it counts the places of cordoned nodes as well.
func (f Fit) boundsEven(all []corev1.Node, fellows []Fellow) []bound {
	if len(f.template.Spec.TopologySpreadConstraints) == 0 {
		return nil
	}
	asked := slices.DeleteFunc(slices.Clone(all), func(n corev1.Node) bool {
		fits, err := f.affinity.Match(&n)
		return err != nil || !fits
	})
	var out []bound
	for _, c := range f.template.Spec.TopologySpreadConstraints {
		if c.WhenUnsatisfiable != corev1.DoNotSchedule || !selectsLabels(c.LabelSelector, f.template.Labels) {
			continue
		}
		even := bound{key: c.TopologyKey, count: countFellows(c.TopologyKey, asked, selectFellows(c.LabelSelector, fellows)), everywhere: true}
		if len(even.count) > 0 {
			even.most = c.MaxSkew - 1
			// With fewer places than there must be, the scheduler takes the emptiest for one without a pod.
			if len(even.count) >= int(ptr.Deref(c.MinDomains, 1)) {
				even.most += slices.Min(slices.Collect(maps.Values(even.count)))
			}
		}
		out = append(out, even)
	}
	return out
}

// countFellows counts fellows by the values that a label of nodes has; also those that none has.
func countFellows(key string, nodes []corev1.Node, fellows []Fellow) map[string]int32 {
	out := map[string]int32{}
	for n := range nodes {
		place, named := nodes[n].Labels[key]
		if !named {
			continue
		}
		out[place] += 0
		for _, at := range fellows {
			if at.Node == nodes[n].Name {
				out[place]++
			}
		}
	}
	return out
}

// selectFellows returns the fellows that a selector means.
func selectFellows(selector *metav1.LabelSelector, fellows []Fellow) []Fellow {
	return slices.DeleteFunc(slices.Clone(fellows), func(f Fellow) bool { return !selectsLabels(selector, f.Labels) })
}

// selectsLabels reports whether a selector means pods of some labels.
func selectsLabels(selector *metav1.LabelSelector, of map[string]string) bool {
	means, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && means.Matches(labels.Set(of))
}
