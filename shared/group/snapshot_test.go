package group

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/gate"
	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// P3: whether the data of a deleted member is back does not depend on labels that
// nobody has written yet.
func TestAClaimThatIsRestoredIsSeenWithoutItsLabels(t *testing.T) {
	lost := func(changes ...func(*v1alpha1.Instance)) *v1alpha1.Instance {
		i := &v1alpha1.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a-0", DeletionTimestamp: &metav1.Time{}}}
		i.Spec.VolumeClaimTemplates = []v1alpha1.VolumeClaimTemplate{{Name: "data"}}
		i.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionVolumesReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonClaimLost}}
		for _, change := range changes {
			change(i)
		}
		return i
	}
	claim := func(labels map[string]string) client.Object {
		return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "data-a-0", Labels: labels}}
	}
	for name, c := range map[string]struct {
		instance *v1alpha1.Instance
		exists   []client.Object
		seen     int
	}{
		"nothing is there":              {lost(), nil, 0},
		"it has no labels":              {lost(), []client.Object{claim(nil)}, 1},
		"it is somebody else's":         {lost(), []client.Object{claim(map[string]string{v1alpha1.LabelInstance: "b-0"})}, 0},
		"nobody has deleted the member": {lost(func(i *v1alpha1.Instance) { i.DeletionTimestamp = nil }), []client.Object{claim(nil)}, 0},
		"its claims are not lost":       {lost(func(i *v1alpha1.Instance) { i.Status.Conditions = nil }), []client.Object{claim(nil)}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			scheme, err := operator.NewScheme()
			require.NoError(t, err)
			live := fake.NewClientBuilder().WithScheme(scheme).WithObjects(c.exists...).Build()
			s := Snapshot{Instances: []*v1alpha1.Instance{c.instance}, Claims: map[string][]metav1.ObjectMeta{}}
			require.NoError(t, restoredClaims(t.Context(), live, s))
			assert.Len(t, s.Claims["a-0"], c.seen)
		})
	}
}

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
		"nobody knows which nodes":                     {v1alpha1.ReasonPodUnschedulable, []v1alpha1.VolumeStatus{{Name: "data", NodeBound: true}}, "gone", ""},
		"a volume of a node that is there, and others": {v1alpha1.ReasonPodUnschedulable, []v1alpha1.VolumeStatus{near("n1"), far}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			i := &v1alpha1.Instance{ObjectMeta: metav1.ObjectMeta{Name: "a-0"}}
			i.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionPodReady, Status: metav1.ConditionFalse, Reason: c.pod}}
			i.Status.Volumes = c.volumes
			s := Snapshot{Instances: []*v1alpha1.Instance{i}, Claims: map[string][]metav1.ObjectMeta{
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

// P11: a group made again under its name is not what its spec asks for while
// Instances of the former one fill its slots, whether they are leaving already or not.
func TestInstancesOfAFormerGroupStandInTheWay(t *testing.T) {
	g := &v1alpha1.TiKVGroup{ObjectMeta: metav1.ObjectMeta{Name: "kv", Namespace: "ns", UID: "new"}}
	g.Spec.PDGroup.Name, g.Spec.Replicas = "pd", ptr.To(int32(1))
	r := Rendering{Disrupt: calm{}, Gate: gate.Result{Open: true}, RollGate: gate.Result{Open: true}}
	target, err := resolve(Snapshot{}, r)
	require.NoError(t, err)
	for name, leaves := range map[string]bool{"that stays for now": false, "that leaves": true} {
		t.Run(name, func(t *testing.T) {
			former, err := newInstance(g, r, target, 0)
			require.NoError(t, err)
			former.OwnerReferences[0].UID = "old"
			former.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue}}
			if leaves {
				doomed(former)
			}

			plan, err := MakePlan(g, Snapshot{Instances: []*v1alpha1.Instance{former}}, r)

			require.NoError(t, err)
			assert.Equal(t, step.KindWait, plan.Outcome.Kind)
			assert.Equal(t, v1alpha1.ReasonDeleting, plan.Outcome.Reason)
			assert.Contains(t, plan.Outcome.Message, "kv-0")
			assert.Empty(t, plan.Instances)
		})
	}
}
