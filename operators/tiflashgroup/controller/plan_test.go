package controller

import (
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
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/pd"
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

// world is a snapshot with a PDGroup, a TiKVGroup and n Instances of the
// sample at its revision, all of them Ready and their stores Up.
func world(t *testing.T, g *v1alpha1.TiFlashGroup, n int32) observation.Snapshot {
	t.Helper()
	s := observation.Snapshot{
		PDGroup:    &v1alpha1.PDGroup{ObjectMeta: metav1.ObjectMeta{Name: "basic-pd", Namespace: "shop", Generation: 1}},
		TiKVGroups: []*v1alpha1.TiKVGroup{{ObjectMeta: metav1.ObjectMeta{Name: "basic-tikv", Namespace: "shop", Generation: 1}}},
		PD: pd.View{ClusterID: "1", PlacementRules: true, LocationLabels: []string{"zone"}, Leader: "pd",
			Members: []pd.Member{{Name: "pd", Healthy: true}}, MaxReplicas: 3},
		Now: now(),
	}
	s.PDGroup.Status.ClusterID = "1"
	s.PDGroup.Status.Conditions = []metav1.Condition{is("Ready", true)}
	s.TiKVGroups[0].Spec.PDGroup.Name = "basic-pd"
	s.TiKVGroups[0].Status.Conditions = []metav1.Condition{is("Ready", true)}
	fresh := *g
	fresh.Spec.Replicas = ptr.To(n)
	p, err := makePlan(&fresh, s)
	require.NoError(t, err)
	for slot, change := range p.Instances {
		i := change.Desired
		i.Generation = 1
		i.Status.NodeName, i.Status.PodUID, i.Status.Revision = "n1", types.UID("pod-"+i.Name), i.Spec.Revision
		i.Status.Conditions = []metav1.Condition{is("Ready", true), is("PodReady", true), is("Joined", true), is("Healthy", true)}
		i.Status.Member = &v1alpha1.MemberStatus{ID: fmt.Sprint(slot + 1), State: "Up"}
		s.Instances = append(s.Instances, i)
		s.PD.Stores = append(s.PD.Stores, pd.Store{ID: fmt.Sprint(slot + 1), State: "Up", Started: true,
			Address: fmt.Sprintf("basic-tiflash-%d.basic-tiflash-peer.shop.svc:3930", slot), Labels: map[string]string{"engine": "tiflash"}})
	}
	return s
}

func TestPlan(t *testing.T) {
	for name, c := range map[string]struct {
		exist   int32
		change  func(*v1alpha1.TiFlashGroup, *observation.Snapshot)
		creates int
		rules   bool
		labels  int
		kind    step.Kind
		reason  string
	}{
		"a missing PDGroup starts nothing": {0, func(_ *v1alpha1.TiFlashGroup, s *observation.Snapshot) { s.PDGroup = nil }, 0, false, 0, step.KindWait, v1alpha1.ReasonWaitingForPDGroup},
		"a PDGroup that is not Ready comes before TiKV": {0, func(_ *v1alpha1.TiFlashGroup, s *observation.Snapshot) {
			s.PDGroup.Status.Conditions, s.TiKVGroups = nil, nil
		}, 0, false, 0, step.KindWait, v1alpha1.ReasonWaitingForPDGroup},
		"no TiKVGroup starts nothing": {0, func(_ *v1alpha1.TiFlashGroup, s *observation.Snapshot) { s.TiKVGroups = nil }, 0, false, 0, step.KindWait, v1alpha1.ReasonWaitingForTiKVGroup},
		"a TiKVGroup of another PDGroup does not count": {0, func(_ *v1alpha1.TiFlashGroup, s *observation.Snapshot) {
			s.TiKVGroups[0].Spec.PDGroup.Name = "other"
		}, 0, false, 0, step.KindWait, v1alpha1.ReasonWaitingForTiKVGroup},
		"one Ready TiKVGroup of several is enough": {0, func(_ *v1alpha1.TiFlashGroup, s *observation.Snapshot) {
			broken := s.TiKVGroups[0].DeepCopy()
			broken.Status.Conditions = nil
			s.TiKVGroups = append([]*v1alpha1.TiKVGroup{broken}, s.TiKVGroups...)
		}, 2, false, 0, step.KindWait, v1alpha1.ReasonCreating},
		"FL-01: rules that are off are turned on before the first pod": {0, func(_ *v1alpha1.TiFlashGroup, s *observation.Snapshot) { s.PD.PlacementRules = false }, 0, true, 0, step.KindWait, v1alpha1.ReasonProgressing},
		"FL-01: rules are not touched while TiKV is missing": {0, func(_ *v1alpha1.TiFlashGroup, s *observation.Snapshot) {
			s.PD.PlacementRules, s.TiKVGroups = false, nil
		}, 0, false, 0, step.KindWait, v1alpha1.ReasonWaitingForTiKVGroup},
		"FL-01: while PD does not answer about rules nothing starts": {0, func(_ *v1alpha1.TiFlashGroup, s *observation.Snapshot) { s.PD = pd.View{Err: errors.New("no")} }, 0, false, 0, step.KindWait, v1alpha1.ReasonPDUnreachable},
		"FL-01: the rules of another cluster's PD are left alone": {0, func(_ *v1alpha1.TiFlashGroup, s *observation.Snapshot) {
			s.PD.ClusterID, s.PD.PlacementRules = "2", false
		}, 0, false, 0, step.KindWait, v1alpha1.ReasonPDUnreachable},
		"everything open starts all stores at once": {0, nil, 2, false, 0, step.KindWait, v1alpha1.ReasonCreating},
		"everything is there":                       {2, nil, 0, false, 0, step.KindDone, ""},
		"gates that close later touch nothing":      {2, func(_ *v1alpha1.TiFlashGroup, s *observation.Snapshot) { s.PDGroup, s.TiKVGroups = nil, nil }, 0, false, 0, step.KindDone, ""},
		"KV-18: labels are set": {2, func(g *v1alpha1.TiFlashGroup, _ *observation.Snapshot) {
			g.Spec.StoreLabels = map[string]v1alpha1.StoreLabelValue{"disk": "x"}
		}, 0, false, 2, step.KindWait, v1alpha1.ReasonProgressing},
		"KV-02: a foreign store stalls": {2, func(_ *v1alpha1.TiFlashGroup, s *observation.Snapshot) { s.PD.Stores[1].ID = "99" }, 0, false, 0, step.KindStall, v1alpha1.ReasonStoreMismatch},
		"paused changes nothing": {1, func(g *v1alpha1.TiFlashGroup, s *observation.Snapshot) {
			g.Spec.Paused = true
			s.PD.PlacementRules = false
		}, 0, false, 0, step.KindWait, v1alpha1.ReasonPaused},
		"bad TOML touches nothing": {1, func(g *v1alpha1.TiFlashGroup, s *observation.Snapshot) {
			g.Spec.Config = "x = ["
			s.PD.PlacementRules = false
		}, 0, false, 0, step.KindStall, v1alpha1.ReasonInvalidSpec},
		"healthy stores are not restarted": {2, func(g *v1alpha1.TiFlashGroup, _ *observation.Snapshot) { g.Spec.ProxyConfig = "" }, 0, false, 0, step.KindWait, v1alpha1.ReasonPreparing},
		"a group that is being deleted makes nothing": {1, func(g *v1alpha1.TiFlashGroup, s *observation.Snapshot) {
			g.DeletionTimestamp = ptr.To(metav1.Now())
			s.PD.PlacementRules = false
		}, 0, false, 0, step.KindWait, v1alpha1.ReasonDeleting},
		"no replicas are wanted, so PD's rules do not matter": {0, func(g *v1alpha1.TiFlashGroup, s *observation.Snapshot) {
			g.Spec.Replicas = ptr.To[int32](0)
			s.PD.PlacementRules = false
		}, 0, false, 0, step.KindDone, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := sample()
			s := world(t, g, c.exist)
			if c.change != nil {
				c.change(g, &s)
			}
			p, err := makePlan(g, s)
			require.NoError(t, err)
			creates := 0
			for _, change := range p.Instances {
				if change.Live == nil {
					creates++
				} else {
					assert.Equal(t, change.Live.Spec.PodTemplate, change.Desired.Spec.PodTemplate, "no pod is touched")
				}
			}
			assert.Equal(t, c.creates, creates)
			assert.Equal(t, c.rules, p.EnablePlacementRules)
			assert.Len(t, p.Labels, c.labels)
			assert.Equal(t, c.reason, p.Outcome.Reason, p.Outcome.Message)
			assert.Equal(t, c.kind, p.Outcome.Kind)

			status, _, _ := reportStatus(g, s, p, step.Done(), now())
			for _, condition := range status.Conditions {
				info, known := v1alpha1.LookupCondition(condition.Type)
				assert.True(t, known && info.AppliesTo(v1alpha1.KindTiFlashGroup) && info.Has(condition.Reason), "%s/%s", condition.Type, condition.Reason)
				assert.NotEmpty(t, condition.Message)
			}
		})
	}
}

func TestAnUnreachablePDLeavesMembersAsTheyWere(t *testing.T) {
	g := sample()
	s := world(t, g, 2)
	require.Len(t, reportMembers(g, s, groupPlan{}, now()), 2)
	s.PD = pd.View{Err: errors.New("no")}
	assert.Empty(t, reportMembers(g, s, groupPlan{}, now()))
}

// A node that does not answer stops no pod: a restart would hold the Lease until it is back.
func TestAMemberOnANodeThatDoesNotAnswerDoesNotTakeTheLease(t *testing.T) {
	for reason, takes := range map[string]bool{v1alpha1.ReasonNodeUnreachable: false, v1alpha1.ReasonPodReady: true} {
		g := sample()
		s := world(t, g, 2)
		g.Spec.Version = "v9"
		for n := range s.Instances[0].Status.Conditions {
			if c := &s.Instances[0].Status.Conditions[n]; c.Type == v1alpha1.ConditionPodReady && !takes {
				c.Status, c.Reason = metav1.ConditionFalse, reason
			}
		}
		p, err := makePlan(g, s)
		require.NoError(t, err)
		assert.Equal(t, takes, p.Lease.Take != nil && p.Lease.Take.Instance.Name == s.Instances[0].Name, p.Outcome.Message)
	}
}
