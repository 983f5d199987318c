package rig

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// threeNodes are n0, n1, n2 in zones a, a, b.
func threeNodes(changes ...func([]corev1.Node)) placement {
	var p placement
	for i, zone := range []string{"a", "a", "b"} {
		name := []string{"n0", "n1", "n2"}[i]
		node := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelTopologyZone: zone}}}
		node.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}
		p.nodes = append(p.nodes, node)
	}
	for _, change := range changes {
		change(p.nodes)
	}
	return p
}

// with puts pods of the group on nodes.
func (p placement) with(nodes ...string) placement {
	for i, node := range nodes {
		p.neighbours = append(p.neighbours, neighbour{pod: podOf(string(rune('a' + i))), node: node})
	}
	return p
}

func podOf(uid string, changes ...func(*corev1.PodSpec)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: uid, UID: types.UID(uid), Labels: map[string]string{"group": "g"}}}
	pod.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}}}
	for _, change := range changes {
		change(&pod.Spec)
	}
	return pod
}

func ofGroup(key string) corev1.PodAffinityTerm {
	return corev1.PodAffinityTerm{TopologyKey: key, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"group": "g"}}}
}

func affinity(a corev1.Affinity) func(*corev1.PodSpec) {
	return func(s *corev1.PodSpec) { s.Affinity = &a }
}

func apart(key string) func(*corev1.PodSpec) {
	return affinity(corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{ofGroup(key)},
	}})
}

func evenly(key string, hard corev1.UnsatisfiableConstraintAction) func(*corev1.PodSpec) {
	return func(s *corev1.PodSpec) {
		s.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: hard, LabelSelector: ofGroup(key).LabelSelector,
		}}
	}
}

func TestPodsArePlacedAsTheSchedulerWould(t *testing.T) {
	for name, c := range map[string]struct {
		placement placement
		pod       *corev1.Pod
		node      string
		why       string
	}{
		"the first of empty nodes":                 {threeNodes(), podOf("x"), "n0", ""},
		"the emptiest of equal nodes":              {threeNodes().with("n0", "n2"), podOf("x"), "n1", ""},
		"a node that its selector names":           {threeNodes(), podOf("x", func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{corev1.LabelTopologyZone: "b"} }), "n2", ""},
		"no node has the label":                    {threeNodes(), podOf("x", func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{"disk": "gold"} }), "", "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector."},
		"a cordoned node is passed over":           {threeNodes(func(n []corev1.Node) { n[0].Spec.Unschedulable = true }), podOf("x"), "n1", ""},
		"a full node is passed over":               {threeNodes().with("n0", "n0", "n1"), podOf("x", func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{corev1.LabelTopologyZone: "a"} }), "n1", ""},
		"all nodes are full":                       {threeNodes().with("n0", "n0", "n1", "n1", "n2", "n2"), podOf("x"), "", "0/3 nodes are available: 3 Insufficient cpu."},
		"one that must not be near others":         {threeNodes().with("n0", "n1"), podOf("x", apart(corev1.LabelHostname)), "n2", ""},
		"no node is left without others":           {threeNodes().with("n0", "n2"), podOf("x", apart(corev1.LabelTopologyZone)), "", "0/3 nodes are available: 3 node(s) didn't match pod anti-affinity rules."},
		"others keep it off":                       {placement{nodes: threeNodes().nodes, neighbours: []neighbour{{podOf("a", apart(corev1.LabelTopologyZone)), "n0"}}}, podOf("x"), "n2", ""},
		"one that must be near others":             {threeNodes().with("n1"), podOf("x", affinity(corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{ofGroup(corev1.LabelHostname)}}})), "n1", ""},
		"one that would rather not be near others": {threeNodes().with("n0", "n1"), podOf("x", affinity(corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 1, PodAffinityTerm: ofGroup(corev1.LabelHostname)}}}})), "n2", ""},
		"spread that is demanded":                  {threeNodes().with("n0"), podOf("x", evenly(corev1.LabelTopologyZone, corev1.DoNotSchedule)), "n2", ""},
		"spread that is demanded and cannot be":    {threeNodes(func(n []corev1.Node) { n[2].Spec.Unschedulable = true }).with("n0"), podOf("x", evenly(corev1.LabelTopologyZone, corev1.DoNotSchedule)), "", "0/3 nodes are available: 2 node(s) didn't match pod topology spread constraints, 1 node(s) were unschedulable."},
		"spread that is wished for":                {threeNodes().with("n0"), podOf("x", evenly(corev1.LabelTopologyZone, corev1.ScheduleAnyway)), "n2", ""},
		"spread that is wished for and cannot be":  {threeNodes(func(n []corev1.Node) { n[2].Spec.Unschedulable = true }).with("n0"), podOf("x", evenly(corev1.LabelTopologyZone, corev1.ScheduleAnyway)), "n1", ""},
		"a taint keeps it off": {threeNodes(func(n []corev1.Node) {
			n[0].Spec.Taints = []corev1.Taint{{Key: "k", Value: "v", Effect: corev1.TaintEffectNoSchedule}}
		}), podOf("x"), "n1", ""},
		"a taint that it tolerates does not": {threeNodes(func(n []corev1.Node) {
			n[0].Spec.Taints = []corev1.Taint{{Key: "k", Value: "v", Effect: corev1.TaintEffectNoSchedule}}
		}), podOf("x", func(s *corev1.PodSpec) {
			s.Tolerations = []corev1.Toleration{{Key: "k", Operator: corev1.TolerationOpExists}}
		}), "n0", ""},
		"its volume is on a node":                          {local(threeNodes(), "n1"), podOf("x"), "n1", ""},
		"its volume is on a node that takes no more":       {local(threeNodes(func(n []corev1.Node) { n[1].Spec.Unschedulable = true }), "n1"), podOf("x"), "", "0/3 nodes are available: 2 node(s) didn't match PersistentVolume's node affinity, 1 node(s) were unschedulable."},
		"a selector that cannot be read means no neighbor": {threeNodes().with("n0"), podOf("x", affinity(corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "k", Operator: "?"}}}}}}})), "n1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			node, why := c.placement.pick(c.pod)
			assert.Equal(t, c.node, node)
			assert.Equal(t, c.why, why)
		})
	}
}

// local has the pod's volume on a node.
func local(p placement, node string) placement {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{UID: "c"}}
	p.volumes = append(p.volumes, localVolume(claim, node).Spec.NodeAffinity.Required)
	return p
}

func TestAPodToleratesAnUnreachableNodeForTheShortestTimeThatItSays(t *testing.T) {
	seconds := func(n int64) *int64 { return &n }
	for name, c := range map[string]struct {
		tolerations []corev1.Toleration
		seconds     int64
		forever     bool
	}{
		"not at all":          {nil, 0, false},
		"for some time":       {[]corev1.Toleration{{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: seconds(300)}}, 300, false},
		"forever":             {[]corev1.Toleration{{Operator: corev1.TolerationOpExists}}, 0, true},
		"the shorter of two":  {[]corev1.Toleration{{Operator: corev1.TolerationOpExists}, {Key: corev1.TaintNodeUnreachable, TolerationSeconds: seconds(5)}}, 5, false},
		"another taint":       {[]corev1.Toleration{{Key: "k"}}, 0, false},
		"only not scheduling": {[]corev1.Toleration{{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoSchedule}}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			n, forever := tolerationSeconds(podOf("x", func(s *corev1.PodSpec) { s.Tolerations = c.tolerations }))
			assert.Equal(t, c.forever, forever)
			if !forever {
				assert.Equal(t, c.seconds, n)
			}
		})
	}
}

func TestPreStopAndShutdownTogetherHaveTheGracePeriod(t *testing.T) {
	pod := podOf("x", func(s *corev1.PodSpec) {
		s.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 20}}}
	})
	assert.Equal(t, int64(20), preStop(pod))
}
