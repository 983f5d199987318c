package reading

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/operator"
)

// KV-22.
func TestAVolumeIsLostWithAllTheNodesThatItCanBeUsedOn(t *testing.T) {
	node := func(name, host string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: host}}}
	}
	far, near := v1alpha1.VolumeStatus{Name: "logs", PersistentVolume: "pv"}, func(nodes ...string) v1alpha1.VolumeStatus {
		return v1alpha1.VolumeStatus{Name: "data", PersistentVolume: "pv", NodeBound: true, Nodes: nodes}
	}
	for name, c := range map[string]struct {
		pod     string
		volumes []v1alpha1.VolumeStatus
		claim   string
		lost    string
	}{
		"its node is gone":                             {v1alpha1.ReasonPodUnschedulable, []v1alpha1.VolumeStatus{far, near("gone")}, "", "gone"},
		"both of its nodes are":                        {v1alpha1.ReasonPodUnschedulable, []v1alpha1.VolumeStatus{near("away", "gone")}, "", "away, gone"},
		"one of two is left":                           {v1alpha1.ReasonPodUnschedulable, []v1alpha1.VolumeStatus{near("gone", "n1")}, "", ""},
		"its node is there under another name":         {v1alpha1.ReasonPodUnschedulable, []v1alpha1.VolumeStatus{near("host-2")}, "", ""},
		"its node is gone, and the pod not yet":        {v1alpha1.ReasonPodNotReady, []v1alpha1.VolumeStatus{near("gone")}, "", ""},
		"a network volume, once made for a node":       {v1alpha1.ReasonPodUnschedulable, []v1alpha1.VolumeStatus{far}, "gone", ""},
		"its nodes are unknown":                        {v1alpha1.ReasonPodUnschedulable, []v1alpha1.VolumeStatus{{Name: "data", NodeBound: true}}, "gone", ""},
		"a volume of a node that is there, and others": {v1alpha1.ReasonPodUnschedulable, []v1alpha1.VolumeStatus{near("n1"), far}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			i := &v1alpha1.Instance{ObjectMeta: metav1.ObjectMeta{Name: "a-0"}}
			i.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionPodReady, Status: metav1.ConditionFalse, Reason: c.pod}}
			i.Status.Volumes = c.volumes
			s := observation.Snapshot{Instances: []*v1alpha1.Instance{i}, Claims: map[string][]metav1.ObjectMeta{
				"a-0": {{Name: "data-a-0", Annotations: map[string]string{"volume.kubernetes.io/selected-node": c.claim}}},
			}}
			scheme, err := operator.NewScheme()
			require.NoError(t, err)
			var nodes client.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(node("n1", "n1"), node("n2", "host-2")).Build()
			got, err := lostNodes(t.Context(), operator.Env{Client: nodes, Live: nodes}, s)
			require.NoError(t, err)
			assert.Equal(t, c.lost, got["a-0"])
		})
	}
}

// A member that left a cordoned node for no other would stay down until the node is uncordoned. Every
// cluster of kubeadm has a node that is not cordoned and takes none of its pods: its control plane.
func TestACordonedNodeIsLeftForOneThatTakesThePod(t *testing.T) {
	node := func(name, zone string, edits ...func(*corev1.Node)) corev1.Node {
		out := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelTopologyZone: zone}}}
		for _, edit := range edits {
			edit(&out)
		}
		return out
	}
	taint := func(key string, effect corev1.TaintEffect) func(*corev1.Node) {
		return func(n *corev1.Node) { n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Effect: effect}) }
	}
	cordoned := func(n *corev1.Node) {
		n.Spec.Unschedulable = true
		taint(corev1.TaintNodeUnschedulable, corev1.TaintEffectNoSchedule)(n)
	}
	stores := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "store"}}
	others := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "other"}}
	evenly := func(key string, when corev1.UnsatisfiableConstraintAction) func(*corev1.PodSpec) {
		return func(p *corev1.PodSpec) {
			p.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{TopologyKey: key, MaxSkew: 1, WhenUnsatisfiable: when, LabelSelector: stores}}
		}
	}
	apart := func(from *metav1.LabelSelector) func(*corev1.PodSpec) {
		return func(p *corev1.PodSpec) {
			p.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: corev1.LabelHostname, LabelSelector: from}},
			}}
		}
	}
	port := func(hostPort int32, hostNetwork bool) func(*corev1.PodSpec) {
		return func(p *corev1.PodSpec) {
			p.HostNetwork, p.Containers = hostNetwork, []corev1.Container{{Name: "store", Ports: []corev1.ContainerPort{{ContainerPort: 20160, HostPort: hostPort}}}}
		}
	}
	// Members are on n1, which is cordoned, n2 and n3.
	three := []corev1.Node{node("n1", "a", cordoned), node("n2", "b"), node("n3", "c")}
	asks := func(r corev1.ResourceRequirements) func(*corev1.PodSpec) {
		return func(p *corev1.PodSpec) { p.Containers = []corev1.Container{{Name: "store", Resources: r}} }
	}
	memory := func(amount string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(amount)}
	}
	large := func(n *corev1.Node) { n.Status.Allocatable = memory("15Gi") }
	full := []corev1.Node{three[0], node("n2", "b", large), node("n3", "c", large)}
	amongThree := func(p *corev1.PodSpec) {
		evenly(corev1.LabelTopologyZone, corev1.DoNotSchedule)(p)
		p.TopologySpreadConstraints[0].MinDomains = ptr.To(int32(3))
	}
	for name, c := range map[string]struct {
		nodes []corev1.Node
		pod   func(*corev1.PodSpec)
		moves bool
	}{
		"others are open":                   {three, nil, true},
		"all are cordoned":                  {[]corev1.Node{three[0], node("n2", "b", cordoned)}, nil, false},
		"the open one is the control plane": {[]corev1.Node{three[0], node("cp", "a", taint("node-role.kubernetes.io/control-plane", corev1.TaintEffectNoSchedule))}, nil, false},
		"the pod tolerates what taints it": {[]corev1.Node{three[0], node("cp", "a", taint("dedicated", corev1.TaintEffectNoSchedule))}, func(p *corev1.PodSpec) {
			p.Tolerations = []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpExists}}
		}, true},
		"the pod may come back to the node": {three, func(p *corev1.PodSpec) {
			p.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		}, false},
		"the taint only asks":                          {[]corev1.Node{three[0], node("n4", "a", taint("dedicated", corev1.TaintEffectPreferNoSchedule))}, nil, true},
		"the open one does not answer":                 {[]corev1.Node{three[0], node("n4", "a", taint(corev1.TaintNodeUnreachable, corev1.TaintEffectNoSchedule))}, nil, false},
		"the pod asks for labels that no open one has": {three, func(p *corev1.PodSpec) { p.NodeSelector = map[string]string{corev1.LabelTopologyZone: "a"} }, false},
		"members must lie on different nodes":          {three, apart(stores), false},
		"… and one is free":                            {append(three[:3:3], node("n4", "a")), apart(stores), true},
		"… from others' pods":                          {three, apart(others), true},
		"members have ports of their own":              {three, port(0, false), true},
		"members have a port of their node":            {three, port(20160, false), false},
		"members have the network of their node":       {three, port(0, true), false},
		"… and one node is free":                       {append(three[:3:3], node("n4", "a")), port(0, true), true},
		"the members fill the other nodes":             {full, asks(corev1.ResourceRequirements{Requests: memory("8Gi")}), false},
		"… by their limits":                            {full, asks(corev1.ResourceRequirements{Limits: memory("8Gi")}), false},
		"… and one is empty":                           {append(full[:3:3], node("n4", "a", large)), asks(corev1.ResourceRequirements{Requests: memory("8Gi")}), true},
		"two fit on a node":                            {full, asks(corev1.ResourceRequirements{Requests: memory("7Gi")}), true},
		"members must be spread over zones":            {three, evenly(corev1.LabelTopologyZone, corev1.DoNotSchedule), false},
		"… and its zone has another node":              {append(three[:3:3], node("n4", "a")), evenly(corev1.LabelTopologyZone, corev1.DoNotSchedule), true},
		"… and an empty zone has one":                  {append(three[:3:3], node("n4", "d")), evenly(corev1.LabelTopologyZone, corev1.DoNotSchedule), true},
		"… of which there are fewer than must be":      {[]corev1.Node{three[0], node("n2", "a"), node("n3", "b"), node("n4", "b")}, amongThree, false},
		"… of which there are as many as must be":      {append(three[:3:3], node("n4", "a")), amongThree, true},
		"members should be spread over zones":          {three, evenly(corev1.LabelTopologyZone, corev1.ScheduleAnyway), true},
	} {
		t.Run(name, func(t *testing.T) {
			template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: stores.MatchLabels}}
			if c.pod != nil {
				c.pod(&template.Spec)
			}
			raw, err := json.Marshal(template)
			require.NoError(t, err)
			s := observation.Snapshot{}
			for _, at := range []string{"n1", "n2", "n3"} {
				i := &v1alpha1.Instance{ObjectMeta: metav1.ObjectMeta{Name: "store-on-" + at}}
				i.Spec.PodTemplate, i.Status.NodeName = runtime.RawExtension{Raw: raw}, at
				s.Instances = append(s.Instances, i)
			}
			scheme, err := operator.NewScheme()
			require.NoError(t, err)
			nodes := fake.NewClientBuilder().WithScheme(scheme).WithLists(&corev1.NodeList{Items: c.nodes}).Build()
			require.NoError(t, observeNodes(t.Context(), nodes, &s))
			assert.Equal(t, c.moves, s.Cordoned["n1"])
		})
	}
}

// A cluster may have several groups of TiKV, no two members of which are to share a node.
func TestACordonedNodeIsNotLeftForOneWithAMemberOfAnotherGroup(t *testing.T) {
	member := func(name, group, node string) *v1alpha1.Instance {
		template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "store", "group": group}}}
		template.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
			{TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "store"}}},
		}}}
		raw, err := json.Marshal(template)
		require.NoError(t, err)
		i := &v1alpha1.Instance{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: v1alpha1.InstanceStatus{NodeName: node}}
		i.Spec.PodTemplate, i.Spec.Group.Name = runtime.RawExtension{Raw: raw}, group
		return i
	}
	node := func(name string, cordoned bool) corev1.Node {
		return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}}, Spec: corev1.NodeSpec{Unschedulable: cordoned}}
	}
	for other, moves := range map[string]bool{"n2": false, "n1": true, "": true} {
		s := observation.Snapshot{Instances: []*v1alpha1.Instance{member("hot-0", "hot", "n1")}, Siblings: []*v1alpha1.Instance{member("cold-0", "cold", other)}}
		scheme, err := operator.NewScheme()
		require.NoError(t, err)
		nodes := fake.NewClientBuilder().WithScheme(scheme).WithLists(&corev1.NodeList{Items: []corev1.Node{node("n1", true), node("n2", false)}}).Build()
		require.NoError(t, observeNodes(t.Context(), nodes, &s))
		assert.Equal(t, moves, s.Cordoned["n1"], "the other one is on %q", other)
	}
}

// Disks of most clouds can be used in their zone alone. With a node in each of three zones a member that
// left its own would wait for it, and hold the Lease meanwhile.
func TestACordonedNodeIsLeftForOneThatCanUseTheVolumes(t *testing.T) {
	node := func(name, zone string, cordoned bool) corev1.Node {
		return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelTopologyZone: zone}}, Spec: corev1.NodeSpec{Unschedulable: cordoned}}
	}
	disk := func(zones ...string) v1alpha1.VolumeStatus {
		v := v1alpha1.VolumeStatus{PersistentVolume: "pv"}
		for _, zone := range zones {
			v.NodeSelectors = append(v.NodeSelectors, corev1.LabelTopologyZone+" in ("+zone+")")
		}
		return v
	}
	three := []corev1.Node{node("n1", "a", true), node("n2", "b", false), node("n3", "c", false)}
	for name, c := range map[string]struct {
		nodes   []corev1.Node
		volumes []v1alpha1.VolumeStatus
		moves   bool
	}{
		"it has none":                       {three, nil, true},
		"it can be used everywhere":         {three, []v1alpha1.VolumeStatus{disk()}, true},
		"it is of a zone":                   {three, []v1alpha1.VolumeStatus{disk("a")}, false},
		"… that has another node":           {append(three[:3:3], node("n4", "a", false)), []v1alpha1.VolumeStatus{disk("a")}, true},
		"… that has another cordoned node":  {append(three[:3:3], node("n4", "a", true)), []v1alpha1.VolumeStatus{disk("a")}, false},
		"it is of two zones":                {three, []v1alpha1.VolumeStatus{disk("a", "c")}, true},
		"one is of two zones, one of one":   {three, []v1alpha1.VolumeStatus{disk("a", "c"), disk("a")}, false},
		"each is of two zones, none common": {three, []v1alpha1.VolumeStatus{disk("a", "b"), disk("a", "c")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			i := &v1alpha1.Instance{ObjectMeta: metav1.ObjectMeta{Name: "a-0"}, Status: v1alpha1.InstanceStatus{NodeName: "n1", Volumes: c.volumes}}
			i.Spec.PodTemplate.Raw = []byte("{}")
			s := observation.Snapshot{Instances: []*v1alpha1.Instance{i}}
			scheme, err := operator.NewScheme()
			require.NoError(t, err)
			nodes := fake.NewClientBuilder().WithScheme(scheme).WithLists(&corev1.NodeList{Items: c.nodes}).Build()
			require.NoError(t, observeNodes(t.Context(), nodes, &s))
			assert.Equal(t, c.moves, s.Cordoned["n1"])
		})
	}
}
