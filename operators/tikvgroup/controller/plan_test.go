package controller

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/lease"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/planning"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

func now() time.Time { return time.Unix(1800000000, 0) }

func is(kind string, ok bool) metav1.Condition {
	c := metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: "Test", Message: "test", ObservedGeneration: 1, LastTransitionTime: metav1.NewTime(now())}
	if ok {
		c.Status = metav1.ConditionTrue
	}
	return c
}

// world is a snapshot with a PDGroup and n Instances of the sample at its
// revision, all of them Ready and their stores Up.
func world(t *testing.T, g *v1alpha1.TiKVGroup, n int32) observation.Snapshot {
	t.Helper()
	s := observation.Snapshot{PDGroup: &v1alpha1.PDGroup{ObjectMeta: metav1.ObjectMeta{Name: "basic-pd", Namespace: "shop", Generation: 1}}}
	s.PDGroup.Status.ClusterID = "1"
	s.PDGroup.Status.Conditions = []metav1.Condition{is("Ready", true)}
	fresh := *g
	fresh.Spec.Replicas = ptr.To(n)
	p, err := makePlan(&fresh, s)
	require.NoError(t, err)
	s.PD = pd.View{ClusterID: "1", LocationLabels: []string{"zone"}, Leader: "pd", Members: []pd.Member{{Name: "pd", Healthy: true}}, MaxReplicas: 3}
	s.Now = now()
	for slot, change := range p.Instances {
		i := change.Desired
		i.Generation = 1
		i.Status.NodeName, i.Status.PodUID, i.Status.Revision = "n1", types.UID("pod-"+i.Name), i.Spec.Revision
		i.Status.Conditions = []metav1.Condition{is("Ready", true), is("PodReady", true), is("Joined", true), is("Healthy", true)}
		i.Status.Member = &v1alpha1.MemberStatus{ID: fmt.Sprint(slot + 1), State: "Up"}
		s.Instances = append(s.Instances, i)
		s.PD.Stores = append(s.PD.Stores, pd.Store{ID: fmt.Sprint(slot + 1), State: "Up", Started: true, Leaders: 10, Regions: 30,
			Address: fmt.Sprintf("basic-tikv-%d.basic-tikv-peer.shop.svc:20160", slot), Labels: map[string]string{"disk": "ssd"}})
	}
	return s
}

func created(p groupPlan) int {
	n := 0
	for _, c := range p.Instances {
		if c.Live == nil {
			n++
		}
	}
	return n
}

func TestPlan(t *testing.T) {
	for name, c := range map[string]struct {
		exist   int32
		change  func(*v1alpha1.TiKVGroup, *observation.Snapshot)
		creates int
		labels  int
		kind    step.Kind
		reason  string
	}{
		"KV-01: a missing PDGroup starts nothing": {0, func(_ *v1alpha1.TiKVGroup, s *observation.Snapshot) { s.PDGroup = nil }, 0, 0, step.KindWait, v1alpha1.ReasonWaitingForPDGroup},
		"KV-01: a PDGroup that is not Ready starts nothing": {0, func(_ *v1alpha1.TiKVGroup, s *observation.Snapshot) {
			s.PDGroup.Status.Conditions = []metav1.Condition{is("Ready", false)}
		}, 0, 0, step.KindWait, v1alpha1.ReasonWaitingForPDGroup},
		"KV-01: a PDGroup that was Ready for an older spec starts nothing": {0, func(_ *v1alpha1.TiKVGroup, s *observation.Snapshot) { s.PDGroup.Generation = 2 }, 0, 0, step.KindWait, v1alpha1.ReasonWaitingForPDGroup},
		"KV-01: a Ready PDGroup starts all stores at once":                 {0, nil, 3, 0, step.KindWait, v1alpha1.ReasonCreating},
		"everything is there":                          {3, nil, 0, 0, step.KindDone, ""},
		"more replicas are made while the others stay": {2, nil, 1, 0, step.KindWait, v1alpha1.ReasonCreating},
		"a gate that closes later touches nothing": {3, func(_ *v1alpha1.TiKVGroup, s *observation.Snapshot) {
			s.PDGroup.Status.Conditions = []metav1.Condition{is("Ready", false)}
		}, 0, 0, step.KindDone, ""},
		"fewer stores than PD keeps replicas are refused": {3, func(g *v1alpha1.TiKVGroup, _ *observation.Snapshot) { g.Spec.Replicas = ptr.To[int32](2) }, 0, 0, step.KindWait, v1alpha1.ReasonScaleInRefused},
		"KV-18: labels of node and spec that stores lack are set": {3, func(g *v1alpha1.TiKVGroup, s *observation.Snapshot) {
			s.Nodes = map[string]map[string]string{"n1": {"topology.kubernetes.io/zone": "z"}}
		}, 0, 3, step.KindWait, v1alpha1.ReasonProgressing},
		"KV-18: a label of the spec alone": {3, func(g *v1alpha1.TiKVGroup, _ *observation.Snapshot) { g.Spec.StoreLabels["disk"] = "hdd" }, 0, 3, step.KindWait, v1alpha1.ReasonProgressing},
		"KV-18: nothing is set while PD does not answer": {3, func(g *v1alpha1.TiKVGroup, s *observation.Snapshot) {
			g.Spec.StoreLabels["disk"] = "hdd"
			s.PD = pd.View{Err: errors.New("no")}
		}, 0, 0, step.KindDone, ""},
		"KV-18: nothing is set in the PD of another cluster": {3, func(g *v1alpha1.TiKVGroup, s *observation.Snapshot) {
			g.Spec.StoreLabels["disk"] = "hdd"
			s.PD.ClusterID = "2"
		}, 0, 0, step.KindDone, ""},
		"KV-02: a foreign store stalls": {3, func(_ *v1alpha1.TiKVGroup, s *observation.Snapshot) { s.PD.Stores[1].ID = "99" }, 0, 0, step.KindStall, v1alpha1.ReasonStoreMismatch},
		"paused changes nothing": {2, func(g *v1alpha1.TiKVGroup, _ *observation.Snapshot) {
			g.Spec.Paused = true
			g.Spec.StoreLabels["disk"] = "hdd"
		}, 0, 0, step.KindWait, v1alpha1.ReasonPaused},
		"bad TOML touches nothing": {2, func(g *v1alpha1.TiKVGroup, _ *observation.Snapshot) {
			g.Spec.Config = "x = ["
			g.Spec.StoreLabels["disk"] = "hdd"
		}, 0, 0, step.KindStall, v1alpha1.ReasonInvalidSpec},
		"a group that is being deleted makes nothing":  {2, func(g *v1alpha1.TiKVGroup, _ *observation.Snapshot) { g.DeletionTimestamp = ptr.To(metav1.Now()) }, 0, 0, step.KindWait, v1alpha1.ReasonDeleting},
		"KV-10: another version begins with the Lease": {3, func(g *v1alpha1.TiKVGroup, _ *observation.Snapshot) { g.Spec.Version = "v9" }, 0, 0, step.KindWait, v1alpha1.ReasonPreparing},
		"no replicas are wanted":                       {0, func(g *v1alpha1.TiKVGroup, _ *observation.Snapshot) { g.Spec.Replicas = ptr.To[int32](0) }, 0, 0, step.KindDone, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := sample()
			s := world(t, g, c.exist)
			if c.change != nil {
				c.change(g, &s)
			}
			p, err := makePlan(g, s)
			require.NoError(t, err)
			assert.Equal(t, c.creates, created(p))
			assert.Len(t, p.Labels, c.labels)
			assert.Equal(t, c.reason, p.Outcome.Reason, p.Outcome.Message)
			assert.Equal(t, c.kind, p.Outcome.Kind)
			for _, change := range p.Instances {
				if change.Live != nil && c.reason != v1alpha1.ReasonCreating {
					assert.Equal(t, change.Live.Spec.PodTemplate, change.Desired.Spec.PodTemplate, "no pod is touched")
				}
			}
		})
	}
}

// P7, KV-14: an Instance that crashes with a wrong image takes a new one at once,
// and the others stay.
func TestMistakeIsUndoneByAnEdit(t *testing.T) {
	g := sample()
	s := world(t, g, 3)
	s.PD.Stores[0].State = pd.StateDisconnected
	crashes := is("PodReady", false)
	crashes.Reason = v1alpha1.ReasonContainerCrashing
	s.Instances[0].Status.Conditions = []metav1.Condition{is("Ready", false), crashes}
	g.Spec.Version = "v9"
	p, err := makePlan(g, s)
	require.NoError(t, err)
	for n, change := range p.Instances {
		assert.Equal(t, n == 0, change.Desired.Spec.Revision == p.Target.Hash, change.Desired.Name)
	}
}

func TestReport(t *testing.T) {
	for name, c := range map[string]struct {
		exist  int32
		change func(*v1alpha1.TiKVGroup, *observation.Snapshot)
		want   map[string]string // condition: status/reason
	}{
		"everything is there": {3, nil, map[string]string{
			"Ready": "True/Ready", "UpToDate": "True/UpToDate", "DependenciesReady": "True/DependenciesReady", "StoresHealthy": "True/StoresHealthy"}},
		"KV-01: the PDGroup is missing": {0, func(_ *v1alpha1.TiKVGroup, s *observation.Snapshot) { s.PDGroup = nil }, map[string]string{
			"Ready": "False/WaitingForPDGroup", "UpToDate": "False/WaitingForPDGroup", "Reconciling": "True/WaitingForPDGroup", "DependenciesReady": "False/WaitingForPDGroup", "StoresHealthy": "False/WaitingForPDGroup"}},
		"the PDGroup goes away later": {3, func(_ *v1alpha1.TiKVGroup, s *observation.Snapshot) { s.PDGroup = nil }, map[string]string{
			"Ready": "False/WaitingForPDGroup", "UpToDate": "False/WaitingForPDGroup", "Reconciling": "True/WaitingForPDGroup", "DependenciesReady": "False/WaitingForPDGroup", "StoresHealthy": "Unknown/WaitingForPDGroup"}},
		"suspended": {0, func(g *v1alpha1.TiKVGroup, _ *observation.Snapshot) { g.Spec.Suspended = true }, map[string]string{
			"Ready": "False/Suspended", "UpToDate": "True/UpToDate", "DependenciesReady": "True/DependenciesReady", "StoresHealthy": "False/Suspended"}},
		"paused": {3, func(g *v1alpha1.TiKVGroup, _ *observation.Snapshot) { g.Spec.Paused = true }, map[string]string{
			"Ready": "True/Ready", "UpToDate": "False/Paused", "Paused": "True/Paused", "DependenciesReady": "True/DependenciesReady", "StoresHealthy": "True/StoresHealthy"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := sample()
			s := world(t, g, c.exist)
			if c.change != nil {
				c.change(g, &s)
			}
			p, err := makePlan(g, s)
			require.NoError(t, err)
			status, _, _ := reportStatus(g, s, p, step.Done(), now())
			got := map[string]string{}
			for _, condition := range status.Conditions {
				got[condition.Type] = string(condition.Status) + "/" + condition.Reason
				info, known := v1alpha1.LookupCondition(condition.Type)
				assert.True(t, known && info.AppliesTo(v1alpha1.KindTiKVGroup) && info.Has(condition.Reason), "%s/%s", condition.Type, condition.Reason)
				assert.NotEmpty(t, condition.Message)
			}
			assert.Equal(t, c.want, got)
			again, _, _ := reportStatus(withStatus(g, status), s, p, step.Done(), now().Add(time.Second))
			if p.Outcome.Kind != step.KindDone || got["Ready"] == "True/Ready" || g.Spec.Suspended {
				assert.Equal(t, mustJSON(t, status), mustJSON(t, again), "P9: nothing in it changes by itself")
			}
		})
	}
}

func withStatus(g *v1alpha1.TiKVGroup, status v1alpha1.TiKVGroupStatus) *v1alpha1.TiKVGroup {
	out := g.DeepCopy()
	out.Status = status
	return out
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	require.NoError(t, err)
	return string(raw)
}

func TestAnUnreachablePDLeavesMembersAsTheyWere(t *testing.T) {
	g := sample()
	s := world(t, g, 3)
	require.Len(t, reportMembers(g, s, groupPlan{}, now()), 3)
	s.PD = pd.View{Err: errors.New("no")}
	assert.Empty(t, reportMembers(g, s, groupPlan{}, now()))
	p, err := makePlan(g, s)
	require.NoError(t, err)
	g.Status.Stores = []v1alpha1.StoreStatus{{Instance: "basic-tikv-0", ID: "1", State: "Up"}}
	status, _, _ := reportStatus(g, s, p, step.Done(), now())
	assert.Equal(t, g.Status.Stores, status.Stores)
}

// KV-15: a group that was deleted in the middle of an eviction, and made again, finds
// by the Lease what was begun, and gives that on when PD has forgotten it.
func TestKV15ARecreatedGroupRemovesAnOldEviction(t *testing.T) {
	g := sample()
	s := world(t, g, 3)
	g.Spec.Replicas = ptr.To[int32](3)
	s.Lease, s.HolderLost = lease.NewState(lease.Holder{Kind: v1alpha1.KindTiKVGroup, Instance: s.Instances[0].Name, UID: "former"}, now(), 9), true
	s.PD.EvictLeader = []string{"1"}
	order := component.Call{Verb: component.StopEvictingLeaders, Target: "1", Instance: s.Instances[0].Name}
	p, err := makePlan(g, s)
	require.NoError(t, err)
	assert.Equal(t, []component.Call{order}, p.Calls)
	assert.Equal(t, planning.LeaseChange{}, p.Lease)
	assert.Contains(t, p.Outcome.Message, "will lead again")

	g.Spec.Paused = true
	p, err = makePlan(g, s)
	require.NoError(t, err)
	assert.Empty(t, p.Calls, "a paused group does nothing")
	assert.False(t, p.Lease.Release, "and what was begun is not forgotten")

	s.PD.EvictLeader = nil
	for _, paused := range []bool{true, false} {
		g.Spec.Paused = paused
		p, err = makePlan(g, s)
		require.NoError(t, err)
		assert.Empty(t, p.Calls)
		assert.True(t, p.Lease.Release, "others wait for it")
	}

	s.PD = pd.View{Err: errors.New("no")}
	p, err = makePlan(g, s)
	require.NoError(t, err)
	assert.False(t, p.Lease.Release, "it is unknown")
}
