package controller

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/conditions"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/testkit/invariants"
)

// clock is a time of whole seconds, as the API keeps it.
func clock() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

// stored is the sample as the API server would return it.
func stored(changes ...func(*v1alpha1.PDGroup)) *v1alpha1.PDGroup {
	return sample("ns", append([]func(*v1alpha1.PDGroup){func(g *v1alpha1.PDGroup) {
		g.UID, g.Generation = "group-uid", 2
	}}, changes...)...)
}

func bootstrapped(g *v1alpha1.PDGroup) { g.Status.ClusterID = "73" }

func replicasOf(n int32) func(*v1alpha1.PDGroup) {
	return func(g *v1alpha1.PDGroup) { g.Spec.Replicas = ptr.To(n) }
}

// started returns what is seen of a group whose members run: what a first plan
// would create, Ready, its revision stored, and a PD that answers.
func started(t *testing.T, g *v1alpha1.PDGroup, n int, changes ...func(*observation.Snapshot)) observation.Snapshot {
	t.Helper()
	unborn := g.DeepCopy()
	unborn.Spec.Paused, unborn.Spec.Suspended, unborn.DeletionTimestamp = false, false, nil
	unborn.Status.ClusterID = ""
	unborn.Spec.Replicas = ptr.To(int32(n))
	p, err := makePlan(unborn, observation.Snapshot{PD: pd.View{Err: errors.New("no answer")}})
	require.NoError(t, err)
	s := observation.Snapshot{PDGroup: g, Now: clock(), PD: pd.View{ClusterID: "73", Leader: "basic-pd-0"}, ConfigMaps: map[string]bool{}}
	if p.Revision != nil {
		s.Revisions = []appsv1.ControllerRevision{*p.Revision}
		s.ConfigMaps[p.ConfigMap.Name] = true
	}
	for _, change := range p.Instances {
		i := change.Desired
		i.Generation, i.Status.PodUID = 1, types.UID("pod-"+i.Name)
		tells(i, time.Hour, v1alpha1.ConditionReady, "True", v1alpha1.ReasonReady, v1alpha1.ConditionPodReady, "True", v1alpha1.ReasonPodReady)
		s.Instances = append(s.Instances, i)
		s.PD.Members = append(s.PD.Members, pd.Member{Name: i.Name, ID: fmt.Sprint(i.Spec.Slot + 1), Healthy: true, ClientURL: "http://" + i.Name})
	}
	for _, change := range changes {
		change(&s)
	}
	return s
}

// says sets a condition of an Instance.
func says(i *v1alpha1.Instance, kind string, status metav1.ConditionStatus, reason string) {
	set := conditions.New(nil, i.Generation, clock())
	set.SetCondition(kind, status, reason, "the reason is "+reason)
	i.Status.Conditions = set.List()
}

func unready(slot int) func(*observation.Snapshot) {
	return func(s *observation.Snapshot) {
		says(s.Instances[slot], v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonImagePullFailed)
		s.PD.Members[slot].Healthy = false
	}
}

func pdUnreachable(s *observation.Snapshot) { s.PD = pd.View{Err: errors.New("connection refused")} }

func mustPlan(t *testing.T, g *v1alpha1.PDGroup, s observation.Snapshot) groupPlan {
	t.Helper()
	p, err := makePlan(g, s)
	require.NoError(t, err)
	return p
}

// reported plans and reports, and checks the invariants of the status.
func reported(t *testing.T, g *v1alpha1.PDGroup, s observation.Snapshot, now time.Time) (*v1alpha1.PDGroup, step.Outcome) {
	t.Helper()
	status, _, end := reportStatus(g, s, mustPlan(t, g, s), step.Done(), now)
	out := g.DeepCopy()
	out.TypeMeta = metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion().String(), Kind: v1alpha1.KindPDGroup}
	out.Status = status
	raw, err := json.Marshal(out)
	require.NoError(t, err)
	fields := map[string]any{}
	require.NoError(t, json.Unmarshal(raw, &fields))
	object := &unstructured.Unstructured{Object: fields}
	object.SetGeneration(out.Generation)
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &v1alpha1.PDGroup{}))
	require.Empty(t, invariants.Check(object))
	return out, end
}
