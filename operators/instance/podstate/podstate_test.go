package podstate

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/instance/observation"
	"github.com/tidb-groups/tidb-groups/operators/instance/planning"
	"github.com/tidb-groups/tidb-groups/shared/gate"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

func clock() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

func instance() *v1alpha1.Instance {
	i := &v1alpha1.Instance{ObjectMeta: metav1.ObjectMeta{Name: "basic-tikv-0", Namespace: "db", UID: "instance"}}
	i.Spec.Group = v1alpha1.InstanceGroup{Kind: v1alpha1.KindTiKVGroup, Name: "basic-tikv"}
	return i
}

// onNode is a pod of the Instance on node n1, changed.
func onNode(changes ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "basic-tikv-0", Namespace: "db"}}
	pod.Spec.NodeName = "n1"
	for _, change := range changes {
		change(pod)
	}
	return pod
}

// stopping is a pod whose grace period ends so much later.
func stopping(left time.Duration) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.DeletionTimestamp = ptr.To(metav1.NewTime(clock().Add(left))) }
}

// condition is one of a pod, since a while.
func condition(kind corev1.PodConditionType, status corev1.ConditionStatus, reason string, ago time.Duration) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: kind, Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(clock().Add(-ago))})
	}
}

// nowhere is a pod for which the scheduler has found no node.
func nowhere(pod *corev1.Pod) {
	pod.Spec.NodeName = ""
	condition(corev1.PodScheduled, corev1.ConditionFalse, corev1.PodReasonUnschedulable, 0)(pod)
}

// P3: a pod of the Instance's name is adopted only if it is ours and has no controller.
func TestWhichPodsAreOurs(t *testing.T) {
	controlled := func(uid types.UID, controls bool) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.OwnerReferences = append(pod.OwnerReferences, metav1.OwnerReference{UID: uid, Controller: &controls})
		}
	}
	labelled := func(instance, manager string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.Labels = map[string]string{v1alpha1.LabelInstance: instance, v1alpha1.LabelManagedBy: manager}
		}
	}
	ours := labelled("basic-tikv-0", v1alpha1.ManagedBy)
	for name, c := range map[string]struct {
		pod  *corev1.Pod
		want PodOwner
	}{
		"that the Instance controls":          {onNode(ours, controlled("instance", true)), OwnPod},
		"of an Instance of the name before":   {onNode(ours, controlled("before", true)), ForeignPod},
		"of a StatefulSet":                    {onNode(controlled("set", true)), ForeignPod},
		"that has our labels and no owner":    {onNode(ours), OrphanPod},
		"that has an owner and no controller": {onNode(ours, controlled("instance", false)), OrphanPod},
		"of another Instance":                 {onNode(labelled("basic-tikv-1", v1alpha1.ManagedBy)), ForeignPod},
		"that another manager manages":        {onNode(labelled("basic-tikv-0", "helm")), ForeignPod},
		"that a user has made":                {onNode(), ForeignPod},
	} {
		assert.Equal(t, c.want, OwnerOf(instance(), c.pod), "a pod "+name)
	}
}

// What a group's operator last said stands. That it says nothing is a reason to look whether it runs, but not
// in the moments after the pod has become ready.
func TestAnUnansweredGateIsReportedAfterAWhile(t *testing.T) {
	gates := func(c ...metav1.Condition) func(*v1alpha1.Instance) {
		return func(i *v1alpha1.Instance) {
			i.Spec.ReadinessGates, i.Status.Conditions = []string{v1alpha1.ConditionJoined, v1alpha1.ConditionHealthy}, c
		}
	}
	joined := metav1.Condition{Type: v1alpha1.ConditionJoined, Status: metav1.ConditionTrue}
	healthy := metav1.Condition{Type: v1alpha1.ConditionHealthy, Status: metav1.ConditionTrue, ObservedGeneration: -1}
	sick := metav1.Condition{Type: v1alpha1.ConditionHealthy, Status: metav1.ConditionFalse, Message: "PD calls the store Down"}
	ready := func(ago time.Duration) *corev1.Pod {
		return onNode(condition(corev1.PodReady, corev1.ConditionTrue, "", ago))
	}
	const unset = "the operator of TiKVGroup basic-tikv has not set condition Healthy yet"
	for name, c := range map[string]struct {
		instance func(*v1alpha1.Instance)
		pod      *corev1.Pod
		message  string
		after    time.Duration
	}{
		"all are open, whatever the spec was then": {gates(joined, healthy), ready(0), "", 0},
		"one is closed":                          {gates(joined, sick), ready(time.Hour), "Healthy is False for TiKVGroup basic-tikv: PD calls the store Down", planning.Deadline},
		"one is not set, of a pod that is ready": {gates(joined), ready(4 * time.Second), unset, gate.ProcessingTimeout - 4*time.Second},
		"one is not set for long":                {gates(joined), ready(gate.ProcessingTimeout), unset + ": is it running?", planning.Deadline},
		"one is not set, of a pod that is not":   {gates(joined), onNode(), unset, gate.ProcessingTimeout},
		"one is not set, and there is no pod":    {gates(joined), nil, unset, gate.ProcessingTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			i := instance()
			c.instance(i)
			o := CheckGates(&observation.Snapshot{Instance: i, Pod: c.pod, Now: clock()})
			assert.Equal(t, c.message == "", o.Kind == step.KindDone)
			assert.Equal(t, c.message, o.Message)
			assert.Equal(t, c.after, o.After)
		})
	}
}

// A node is read only where the message depends on it: nodes are not watched, and may not be
// read everywhere.
func TestANodeIsReadOnlyWhereTheMessageDependsOnIt(t *testing.T) {
	volumes := func(nodes ...string) []observation.Volume {
		return []observation.Volume{{}, {Place: observation.Place{Bound: true, Nodes: nodes}}}
	}
	for name, c := range map[string]struct {
		pod     *corev1.Pod
		volumes []observation.Volume
		want    string
	}{
		"no pod":                           {nil, volumes("n7"), ""},
		"a pod that runs":                  {onNode(), volumes("n1"), ""},
		"a pod that has time to stop":      {onNode(stopping(time.Second)), nil, ""},
		"a pod whose time is over":         {onNode(stopping(0)), nil, "n1"},
		"one that was never scheduled":     {onNode(nowhere, stopping(0)), volumes("n7"), ""},
		"a pod that fits nowhere":          {onNode(nowhere), nil, ""},
		"nowhere but where its volume is":  {onNode(nowhere), volumes("n7"), "n7"},
		"a volume that more nodes can use": {onNode(nowhere), volumes("n7", "n8"), ""},
	} {
		assert.Equal(t, c.want, AskedNode(&observation.Snapshot{Instance: instance(), Pod: c.pod, Volumes: c.volumes, Now: clock()}), name)
	}
}

// A local volume names its node by the label kubernetes.io/hostname, and a node may have another
// name: that there is none of that name does not say that it is gone, with the data on it.
func TestANodeThatIsNotFoundByNameIsLookedForByItsHostName(t *testing.T) {
	s := &observation.Snapshot{Instance: instance(), Pod: onNode(nowhere), Now: clock(), Node: observation.NodeState{Known: true, Absent: true},
		Volumes: []observation.Volume{{Name: "data-basic-tikv-0", Place: observation.Place{Bound: true, Nodes: []string{"host-7"}}}}}
	message := waitForScheduling(s, "Insufficient cpu").Message
	look, replace := strings.Index(message, "no node has that name: kubectl get nodes -l kubernetes.io/hostname=host-7; if that finds one, make room there; if not, bring it back, or if it is gone for good, "), strings.Index(message, "delete instance")
	assert.Positive(t, look, message)
	assert.Greater(t, replace, look, message)
}

// Nothing tells that a grace period is over, so the end of it is when to look again.
func TestAStoppingPodIsCheckedWhenItsGracePeriodEnds(t *testing.T) {
	for name, c := range map[string]struct {
		pod   *corev1.Pod
		after time.Duration
	}{
		"in its grace period":             {onNode(stopping(20 * time.Second)), 21 * time.Second},
		"in a long one":                   {onNode(stopping(time.Hour)), planning.Deadline},
		"after it":                        {onNode(stopping(0)), planning.Recheck},
		"that was never on a node":        {onNode(nowhere, stopping(0)), planning.Deadline},
		"that is about to be told to":     {onNode(), planning.Deadline},
		"whose grace period ends at once": {onNode(stopping(time.Millisecond)), time.Second + time.Millisecond},
	} {
		assert.Equal(t, c.after, WaitForStop(&observation.Snapshot{Instance: instance(), Pod: c.pod, Now: clock()}, c.pod).After, name)
	}
}

// A message that changes by itself would be a write each time: the scheduler counts nodes.
func TestMessagesOfTheSchedulerAreReportedWithoutNumbers(t *testing.T) {
	for said, want := range map[string]string{
		"0/3 nodes are available: 1 Insufficient cpu, 2 node(s) had untolerated taint(s). preemption: 0/3 nodes are available.": "Insufficient cpu, node(s) had untolerated taint(s)",
		"0/5 nodes are available: 4 node(s) had untolerated taint(s), 1 Insufficient cpu. preemption: 1 No victims found.":      "Insufficient cpu, node(s) had untolerated taint(s)",
		"0/3 nodes are available: 1 Insufficient cpu, 2 Insufficient cpu.":                                                      "Insufficient cpu",
		"no nodes available to schedule pods": "no nodes available to schedule pods",
	} {
		assert.Equal(t, want, normalizeMessage(said), said)
	}
}
