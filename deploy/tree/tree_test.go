package tree_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/deploy/tree"
)

func meta(name, umbrella string) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Name: name, Generation: 1}
	if umbrella != "" {
		m.OwnerReferences = []metav1.OwnerReference{{Kind: "TidbCluster", Name: umbrella, Controller: ptr.To(true)}}
	}
	return m
}

func conditions(ready, upToDate metav1.ConditionStatus, reason, message string) []metav1.Condition {
	return []metav1.Condition{
		{Type: "Ready", Status: ready, Reason: reason, Message: message, ObservedGeneration: 1},
		{Type: "UpToDate", Status: upToDate, Reason: reason, Message: message, ObservedGeneration: 1},
	}
}

func objects() tree.Objects {
	cluster := v1alpha1.TidbCluster{ObjectMeta: meta("basic", "")}
	cluster.Spec.Version = "v8.5.7"
	cluster.Status.Conditions = conditions("False", "False", "WaitingForPDGroup", "TiKVGroup basic-tikv: PDGroup basic-pd is not Ready")
	pd := v1alpha1.PDGroup{ObjectMeta: meta("basic-pd", "basic")}
	pd.Spec.Replicas = ptr.To[int32](3)
	pd.Status.ReadyReplicas = 1
	pd.Status.Conditions = conditions("True", "False", "PodNotReady", "Instance basic-pd-1: pod is starting")
	kv := v1alpha1.TiKVGroup{ObjectMeta: meta("basic-tikv", "basic")}
	kv.Spec.PDGroup.Name, kv.Spec.Replicas = "basic-pd", ptr.To[int32](3)
	kv.Status.Conditions = conditions("False", "False", "WaitingForPDGroup", "PDGroup basic-pd is not Ready")
	alone := v1alpha1.TiDBGroup{ObjectMeta: meta("alone", "")}
	alone.Spec.PDGroup.Name, alone.Spec.Replicas = "nowhere", ptr.To[int32](1)
	one := v1alpha1.Instance{ObjectMeta: meta("basic-pd-0", "")}
	one.Spec.Group = v1alpha1.InstanceGroup{Kind: "PDGroup", Name: "basic-pd"}
	one.Status.Conditions = conditions("True", "True", "Ready", "fine")
	one.Status.NodeName, one.Status.Member = "node-1", &v1alpha1.MemberStatus{State: "Leader"}
	return tree.Objects{
		Clusters: []v1alpha1.TidbCluster{cluster}, Groups: []v1alpha1.Group{&pd, &kv, &alone}, Instances: []v1alpha1.Instance{one},
	}
}

func TestATreeShowsWhatWaitsForWhat(t *testing.T) {
	want := strings.Join([]string{
		"◌ TidbCluster basic        v8.5.7  ← WaitingForPDGroup: TiKVGroup basic-tikv: PDGroup basic-pd is not Ready",
		"├─ ◐ PDGroup basic-pd      1/3  ← PodNotReady: Instance basic-pd-1: pod is starting",
		"│  └─ ● basic-pd-0         Leader  on node-1",
		"└─ ◌ TiKVGroup basic-tikv  0/3  ← WaitingForPDGroup: PDGroup basic-pd is not Ready",
		"◌ TiDBGroup alone          0/1  ← no status yet: its operator has not seen it",
		"",
	}, "\n")
	assert.Equal(t, want, tree.Draw(tree.Build(objects()), tree.Style{}))
}

func TestALineIsCutToTheTerminal(t *testing.T) {
	for l := range strings.SplitSeq(tree.Draw(tree.Build(objects()), tree.Style{Width: 40}), "\n") {
		assert.LessOrEqual(t, len([]rune(l)), 40)
	}
}

func TestATreeIsDoneWhenEveryObjectIsReadyAndUpToDate(t *testing.T) {
	nodes := tree.Build(objects())
	assert.False(t, tree.IsAllGood(nodes))
	assert.True(t, tree.IsAllGood([]*tree.Node{{State: tree.Good, Children: []*tree.Node{{State: tree.Good}}}}))
	assert.False(t, tree.IsAllGood([]*tree.Node{{State: tree.Good, Children: []*tree.Node{{State: tree.Serving}}}}))
}
