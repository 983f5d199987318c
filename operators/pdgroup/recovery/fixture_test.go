package recovery

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/workload"
)

const right = "a-0/73"

func clock() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

// stricken is a PDGroup whose PD has had no quorum for an hour.
func stricken(request string) *v1alpha1.PDGroup {
	g := &v1alpha1.PDGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: "group", Generation: 1}}
	if request != "" {
		g.Annotations = map[string]string{v1alpha1.AnnotationRecoverQuorum: request}
	}
	g.Status.ClusterID = "73"
	for n := range 3 {
		g.Status.Members = append(g.Status.Members, v1alpha1.PDMember{Name: fmt.Sprintf("a-%d", n)})
	}
	g.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionQuorumHealthy, Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonQuorumLost, LastTransitionTime: metav1.NewTime(clock().Add(-time.Hour))}}
	return g
}

// template is what a member runs, as its operator has written it.
func template(t *testing.T, args ...string) runtime.RawExtension {
	t.Helper()
	raw, err := json.Marshal(corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{
		{Name: "sidecar", Args: []string{"--tail"}}, {Name: v1alpha1.ComponentPD, Args: append([]string{"--join=http://a.ns.svc:2379"}, args...)},
	}}})
	require.NoError(t, err)
	return runtime.RawExtension{Raw: raw}
}

// instance is a member that ran on a claim of its own. Its pod is Ready if it
// runs, and cannot be made else.
func instance(t *testing.T, g *v1alpha1.PDGroup, slot int32, runs bool) *v1alpha1.Instance {
	t.Helper()
	name := fmt.Sprintf("a-%d", slot)
	i := &v1alpha1.Instance{ObjectMeta: workload.Meta(g, name)}
	i.UID, i.Generation, i.Finalizers = types.UID("uid-"+name), 1, []string{v1alpha1.FinalizerMember, v1alpha1.FinalizerInstance}
	i.Spec = v1alpha1.InstanceSpec{Slot: slot, Revision: "r1", PodTemplate: template(t), ClaimRetention: v1alpha1.ClaimRetention{WhenDeleted: v1alpha1.DeleteClaim}}
	i.Status.ObservedGeneration = 1
	i.Status.Volumes = []v1alpha1.VolumeStatus{{Name: "data", ClaimName: "data-" + name, ClaimUID: types.UID("claim-" + name), Phase: "Bound"}}
	status, reason := metav1.ConditionFalse, v1alpha1.ReasonPodUnschedulable
	if runs {
		status, reason = metav1.ConditionTrue, v1alpha1.ReasonPodReady
		i.Status.PodUID, i.Status.Revision = types.UID("pod-"+name), "r1"
	}
	i.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionPodReady, Status: status, Reason: reason, ObservedGeneration: 1}}
	return i
}

// survived is what is seen of it: a-0 runs, and the others do not.
func survived(t *testing.T, g *v1alpha1.PDGroup, changes ...func(*observation.Snapshot)) observation.Snapshot {
	t.Helper()
	s := observation.Snapshot{PDGroup: g, Groups: []v1alpha1.Group{g}, Now: clock(), PD: pd.View{Err: pd.ErrNoLeader}, Claims: map[string][]metav1.ObjectMeta{}}
	for slot := range int32(3) {
		i := instance(t, g, slot, slot == 0)
		s.Instances = append(s.Instances, i)
		s.Claims[i.Name] = []metav1.ObjectMeta{{Name: "data-" + i.Name, UID: types.UID("claim-" + i.Name)}}
	}
	for _, change := range changes {
		change(&s)
	}
	return s
}

// client is an Instance of what PD serves. It has a pod if it runs.
func client(kind, name string, runs bool, changes ...func(*v1alpha1.Instance)) *v1alpha1.Instance {
	i := &v1alpha1.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name + "-0", Generation: 1}}
	i.Spec.Group = v1alpha1.InstanceGroup{Kind: kind, Name: name}
	i.Status.ObservedGeneration = 1
	if runs {
		i.Status.PodUID = types.UID("pod-" + i.Name)
	}
	for _, change := range changes {
		change(i)
	}
	return i
}
