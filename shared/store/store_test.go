package store_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/conditions"
	"github.com/tidb-groups/tidb-groups/shared/gate"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/placement"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/store"
	"github.com/tidb-groups/tidb-groups/shared/storestate"
)

func now() time.Time { return time.Unix(1800000000, 0) }

func kv(replicas int32) *v1alpha1.TiKVGroup {
	g := &v1alpha1.TiKVGroup{ObjectMeta: metav1.ObjectMeta{Name: "kv", Namespace: "ns", Generation: 1}}
	g.Spec.PDGroup.Name, g.Spec.Replicas = "pd", ptr.To(replicas)
	return g
}

// storeInstance is an Instance of slot n with the store ID that it is known by.
func storeInstance(n int32, id string, conditions ...metav1.Condition) *v1alpha1.Instance {
	i := &v1alpha1.Instance{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("kv-%d", n), Namespace: "ns", Generation: 1}}
	i.Labels = map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy, v1alpha1.LabelComponent: v1alpha1.ComponentTiKV}
	i.Spec.Slot, i.Status.Conditions = n, conditions
	if id != "" {
		i.Status.Member = &v1alpha1.MemberStatus{ID: id, Name: i.Name, State: pd.StateUp}
	}
	return i
}

func is(kind string, status metav1.ConditionStatus) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, ObservedGeneration: 1, Reason: "Test", LastTransitionTime: metav1.NewTime(now().Add(-time.Hour))}
}

func served() []metav1.Condition {
	return []metav1.Condition{is("Ready", "True"), is("PodReady", "True"), is("Joined", "True"), is("Healthy", "True")}
}

func at(n int, id, state string) pd.Store {
	return pd.Store{ID: id, State: state, Started: true, Address: fmt.Sprintf("kv-%d.kv-peer.ns.svc:20160", n)}
}

func snapshot(instances []*v1alpha1.Instance, stores ...pd.Store) observation.Snapshot {
	p := &v1alpha1.PDGroup{ObjectMeta: metav1.ObjectMeta{Name: "pd", Namespace: "ns"}}
	p.Status.ClusterID = "1"
	return observation.Snapshot{Instances: instances, PDGroup: p, PD: pd.View{ClusterID: "1", Stores: stores, LocationLabels: []string{"zone"}}}
}

func TestKV02StoreOfAnInstance(t *testing.T) {
	for name, c := range map[string]struct {
		recorded string
		stores   []pd.Store
		id       string
		problem  string
	}{
		"an Instance that has not registered has none":                {"", nil, "", ""},
		"the store at its address is its own when first seen":         {"", []pd.Store{at(0, "4", "Up"), at(1, "5", "Up")}, "4", ""},
		"an address with the cluster's domain is the same":            {"", []pd.Store{{ID: "4", State: "Up", Address: "kv-0.kv-peer.ns.svc.cluster.local:20160"}}, "4", ""},
		"an IPv6 address is no member's":                              {"", []pd.Store{{ID: "4", State: "Up", Address: "[fd00::1]:20160"}}, "", ""},
		"a recorded store at an IPv6 address is a problem":            {"4", []pd.Store{{ID: "4", State: "Up", Address: "[fd00::1]:20160"}}, "", "PD lists that store at [fd00::1]:20160"},
		"another port is another program":                             {"", []pd.Store{{ID: "4", State: "Up", Address: "kv-0.kv-peer.ns.svc:3930"}}, "", ""},
		"another group's pod of the same name is not it":              {"", []pd.Store{{ID: "4", State: "Up", Address: "kv-0.kv2-peer.ns.svc:20160"}}, "", ""},
		"another namespace's pod of the same name is not it":          {"", []pd.Store{{ID: "4", State: "Up", Address: "kv-0.kv-peer.other.svc:20160"}}, "", ""},
		"a leaving store at the address gives way to the new one":     {"", []pd.Store{at(0, "4", "Offline"), at(0, "9", "Up")}, "9", ""},
		"a leaving store alone at the address is still its own":       {"", []pd.Store{at(0, "4", "Offline")}, "4", ""},
		"two stores at the address cannot be told apart":              {"", []pd.Store{at(0, "4", "Up"), at(0, "9", "Down")}, "", "stores 4 and 9"},
		"the store of another Instance is never adopted":              {"", []pd.Store{at(0, "5", "Up")}, "", "store 5, which is Instance kv-1"},
		"the recorded store is its own":                               {"4", []pd.Store{at(0, "4", "Down")}, "4", ""},
		"a recorded store that is gone leaves nothing":                {"4", []pd.Store{at(1, "5", "Up")}, "", ""},
		"another store at the address is never adopted":               {"4", []pd.Store{at(0, "9", "Up")}, "", "is store 4, but at its address PD lists store 9"},
		"another store beside the recorded one is a problem too":      {"4", []pd.Store{at(0, "4", "Down"), at(0, "9", "Up")}, "", "is store 4, but at its address PD lists store 9"},
		"a former store that is leaving does not matter":              {"4", []pd.Store{at(0, "3", "Offline"), at(0, "4", "Up")}, "4", ""},
		"a recorded store at another Instance's address is a problem": {"4", []pd.Store{at(1, "4", "Up")}, "", "PD lists that store at kv-1.kv-peer.ns.svc:20160"},
	} {
		t.Run(name, func(t *testing.T) {
			s := snapshot([]*v1alpha1.Instance{storeInstance(0, c.recorded), storeInstance(1, "5")}, c.stores...)
			m := storestate.Matches(kv(2), s, v1alpha1.PortTiKV)[0]
			id := ""
			if m.Store != nil {
				id = m.Store.ID
			}
			assert.Equal(t, c.id, id)
			if c.problem == "" {
				assert.True(t, m.Own.IsAllowed())
				return
			}
			assert.Contains(t, m.Own.Reason(), c.problem)
			assert.Equal(t, step.KindStall, storestate.StallOnMismatch([]storestate.Match{m}).Kind)
		})
	}
}

// The Instance goes to come back with its claims: they must stay.
func TestWhoGoesOnWithAnotherStoreIsToldToKeepItsClaims(t *testing.T) {
	g := kv(2)
	mismatch := func() string {
		return storestate.Matches(g, snapshot([]*v1alpha1.Instance{storeInstance(0, "4")}, at(0, "9", "Up")), v1alpha1.PortTiKV)[0].Own.Reason()
	}
	assert.Contains(t, mismatch(), "restore its claims, or delete the Instance (kubectl -n ns delete instance kv-0) to go on with store 9")
	g.Spec.PersistentVolumeClaimRetentionPolicy.WhenDeleted = v1alpha1.DeleteClaim
	assert.Contains(t, mismatch(), "restore its claims, or set spec.persistentVolumeClaimRetentionPolicy.whenDeleted (kubectl -n ns edit tikvgroup kv) to Retain first, which keeps its claims, then delete the Instance")
	g.OwnerReferences = []metav1.OwnerReference{{Kind: v1alpha1.KindTidbCluster, Name: "basic", Controller: ptr.To(true)}}
	assert.Contains(t, mismatch(), "(kubectl -n ns edit tidbcluster basic) to Retain first")
}

func TestTheAddressOfAStoreEndsWithTheClusterDomain(t *testing.T) {
	g := kv(1)
	g.Spec.ClusterDomain = "cluster.local"
	m := storestate.Matches(g, snapshot([]*v1alpha1.Instance{storeInstance(0, "")}, pd.Store{ID: "4", State: "Up", Address: "kv-0.kv-peer.ns.svc.cluster.local:20160"}), v1alpha1.PortTiKV)[0]
	require.NotNil(t, m.Store)
	assert.Equal(t, m.Store.Address, m.Address)
}

// Whatever PD lists: a recorded ID is never replaced by another one, and no
// two Instances ever have the same store.
func TestKV02RecordSurvivesEveryAnswer(t *testing.T) {
	states := []string{"", "Up", "Disconnected", "Down", "Offline"}
	tried := 0
	for _, first := range []string{"", "1", "2"} {
		for _, second := range []string{"", "1", "2"} {
			if first == second && first != "" {
				continue // never written
			}
			for _, a := range states {
				for _, b := range states {
					for placement := range 4 {
						var stores []pd.Store
						if a != "" {
							stores = append(stores, at(placement&1, "1", a))
						}
						if b != "" {
							stores = append(stores, at(placement>>1, "2", b))
						}
						s := snapshot([]*v1alpha1.Instance{storeInstance(0, first), storeInstance(1, second)}, stores...)
						matches := storestate.Matches(kv(2), s, v1alpha1.PortTiKV)
						seen := map[string]bool{}
						for n, m := range storestate.Members(matches, nil, nil, now()) {
							had := []string{first, second}[n]
							if had != "" {
								require.Equal(t, had, m.Status.ID)
							}
							if m.Status != nil {
								require.False(t, seen[m.Status.ID], "two Instances are store %s", m.Status.ID)
								seen[m.Status.ID] = true
							}
							healthy := meta.IsStatusConditionTrue(m.Conditions, v1alpha1.ConditionHealthy)
							require.False(t, healthy && !meta.IsStatusConditionTrue(m.Conditions, v1alpha1.ConditionJoined))
							for _, c := range m.Conditions {
								info, _ := v1alpha1.LookupCondition(c.Type)
								require.True(t, info.Has(c.Reason), "%s has no reason %s", c.Type, c.Reason)
							}
							tried++
						}
					}
				}
			}
		}
	}
	t.Logf("%d members judged", tried)
}

func TestHealthOfAMember(t *testing.T) {
	for name, c := range map[string]struct {
		before  []metav1.Condition
		store   *pd.Store
		joined  bool
		healthy bool
		reason  string
	}{
		"no store": {nil, nil, false, false, v1alpha1.ReasonStoreTombstone},
		"Up":       {nil, ptr.To(at(0, "4", "Up")), true, true, v1alpha1.ReasonMemberHealthy},
		"Disconnected after a leader change (trap 2)": {served(), ptr.To(at(0, "4", "Disconnected")), true, true, v1alpha1.ReasonMemberHealthy},
		"Disconnected and never healthy":              {nil, ptr.To(at(0, "4", "Disconnected")), true, false, v1alpha1.ReasonMemberUnhealthy},
		"Down because it only registered (trap 3)":    {nil, &pd.Store{ID: "4", State: "Down", Address: at(0, "", "").Address}, true, false, v1alpha1.ReasonRegistering},
		"Down":    {served(), ptr.To(at(0, "4", "Down")), true, false, v1alpha1.ReasonMemberUnhealthy},
		"Offline": {served(), ptr.To(at(0, "4", "Offline")), true, false, v1alpha1.ReasonMemberUnhealthy},
	} {
		t.Run(name, func(t *testing.T) {
			var stores []pd.Store
			if c.store != nil {
				stores = append(stores, *c.store)
			}
			s := snapshot([]*v1alpha1.Instance{storeInstance(0, "4", c.before...)}, stores...)
			m := storestate.Members(storestate.Matches(kv(1), s, v1alpha1.PortTiKV), nil, nil, now())[0]
			assert.Equal(t, c.joined, meta.IsStatusConditionTrue(m.Conditions, v1alpha1.ConditionJoined))
			healthy := meta.FindStatusCondition(m.Conditions, v1alpha1.ConditionHealthy)
			assert.Equal(t, c.healthy, healthy.Status == metav1.ConditionTrue)
			assert.Equal(t, c.reason, healthy.Reason)
			assert.Equal(t, "4", m.Status.ID)
		})
	}
}

func TestStoresHealthyAndServing(t *testing.T) {
	asleep := errors.New("PD is asleep")
	ready := is(v1alpha1.ConditionReady, "True")
	unreachableFor := func(d time.Duration) []metav1.Condition {
		c := is(v1alpha1.ConditionStoresHealthy, "Unknown")
		c.LastTransitionTime = metav1.NewTime(now().Add(-d))
		return []metav1.Condition{ready, c}
	}
	down := []metav1.Condition{is("Ready", "False"), is("PodReady", "False"), is("Healthy", "True")}
	three := func(third ...metav1.Condition) []*v1alpha1.Instance {
		return []*v1alpha1.Instance{storeInstance(0, "1", served()...), storeInstance(1, "2", served()...), storeInstance(2, "3", third...)}
	}
	up := []pd.Store{at(0, "1", "Up"), at(1, "2", "Up"), at(2, "3", "Up")}
	closed := gate.Dependencies{Result: gate.Result{Message: "PDGroup pd is not Ready"}, Reason: v1alpha1.ReasonWaitingForPDGroup}
	open := gate.Dependencies{Result: gate.Result{Open: true}}
	for name, c := range map[string]struct {
		replicas  int32
		suspended bool
		before    []metav1.Condition
		instances []*v1alpha1.Instance
		stores    []pd.Store
		err       error
		start     gate.Dependencies
		status    metav1.ConditionStatus
		reason    string
		serves    bool
	}{
		"all stores Up": {3, false, nil, three(served()...), up, nil, open, "True", v1alpha1.ReasonStoresHealthy, true},
		"a gate that closed later changes nothing":   {3, false, nil, three(served()...), up, nil, closed, "True", v1alpha1.ReasonStoresHealthy, true},
		"one pod of three is gone":                   {3, false, nil, three(down...), []pd.Store{up[0], up[1], at(2, "3", "Disconnected")}, nil, open, "False", v1alpha1.ReasonStoresUnhealthy, true},
		"the first of three is Ready":                {3, false, nil, []*v1alpha1.Instance{storeInstance(0, "1", served()...)}, up[:1], nil, open, "True", v1alpha1.ReasonStoresHealthy, false},
		"two pods of three are gone":                 {3, false, []metav1.Condition{ready}, []*v1alpha1.Instance{storeInstance(0, "1", served()...), storeInstance(1, "2", down...), storeInstance(2, "3", down...)}, up[:1], nil, open, "False", v1alpha1.ReasonStoresUnhealthy, false},
		"a group that serves goes on while it grows": {9, false, []metav1.Condition{ready}, three(served()...), up, nil, open, "True", v1alpha1.ReasonStoresHealthy, true},
		"the only store is gone":                     {1, false, []metav1.Condition{ready}, []*v1alpha1.Instance{storeInstance(0, "1", down...)}, up[:1], nil, open, "True", v1alpha1.ReasonStoresHealthy, false},
		"a store registers":                          {1, false, nil, []*v1alpha1.Instance{storeInstance(0, "")}, nil, nil, open, "False", v1alpha1.ReasonRegistering, false},
		"another store took its place":               {1, false, nil, []*v1alpha1.Instance{storeInstance(0, "7", served()...)}, up[:1], nil, open, "False", v1alpha1.ReasonStoreMismatch, true},
		"PD does not answer for a moment":            {3, false, unreachableFor(29 * time.Second), three(served()...), nil, asleep, open, "Unknown", v1alpha1.ReasonPDUnreachable, true},
		"PD does not answer for long":                {3, false, unreachableFor(31 * time.Second), three(served()...), nil, asleep, open, "Unknown", v1alpha1.ReasonPDUnreachable, false},
		"PD does not answer and nothing runs":        {1, false, nil, []*v1alpha1.Instance{storeInstance(0, "1", down...)}, nil, asleep, open, "False", v1alpha1.ReasonPDUnreachable, false},
		"no Instance yet, because of PD":             {3, false, nil, nil, nil, nil, closed, "False", v1alpha1.ReasonWaitingForPDGroup, false},
		"no Instance is wanted":                      {0, false, nil, nil, nil, nil, open, "False", v1alpha1.ReasonNoInstances, false},
		"no Instance yet":                            {1, false, nil, nil, nil, nil, open, "False", v1alpha1.ReasonNoInstances, false},
		"suspended":                                  {1, true, nil, []*v1alpha1.Instance{storeInstance(0, "1", down...)}, up[:1], nil, open, "False", v1alpha1.ReasonSuspended, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := kv(c.replicas)
			g.Spec.Suspended, g.Status.Conditions = c.suspended, c.before
			s := snapshot(c.instances, c.stores...)
			var matches []storestate.Match
			if s.PD.Err = c.err; c.err == nil {
				matches = storestate.Matches(g, s, v1alpha1.PortTiKV)
			}
			set := conditions.New(c.before, 1, now())
			store.PutHealth(g, s, matches, c.start, set)
			got := set.Get(v1alpha1.ConditionStoresHealthy)
			assert.Equal(t, c.status, got.Status, got.Message)
			assert.Equal(t, c.reason, got.Reason, got.Message)
			assert.NotEmpty(t, got.Message)
			serves, outcome := store.IsServing(g, s, set, now())
			assert.Equal(t, c.serves, serves)
			assert.Equal(t, c.status == metav1.ConditionUnknown, outcome.Kind != step.KindDone)
		})
	}
}

func TestAnswersOfAnotherPDAreNotUsed(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*observation.Snapshot)
		reason string
	}{
		"the PD of the group":          {func(*observation.Snapshot) {}, ""},
		"no PDGroup":                   {func(s *observation.Snapshot) { s.PDGroup = nil }, v1alpha1.ReasonWaitingForPDGroup},
		"a PDGroup without cluster":    {func(s *observation.Snapshot) { s.PDGroup.Status.ClusterID = "" }, v1alpha1.ReasonWaitingForPDGroup},
		"a PD that fails":              {func(s *observation.Snapshot) { s.PD.Err = errors.New("no") }, v1alpha1.ReasonPDUnreachable},
		"a PD of another cluster":      {func(s *observation.Snapshot) { s.PD.ClusterID = "2" }, v1alpha1.ReasonPDUnreachable},
		"a PD that has not been asked": {func(s *observation.Snapshot) { s.PD = pd.View{} }, v1alpha1.ReasonPDUnreachable},
	} {
		t.Run(name, func(t *testing.T) {
			s := snapshot(nil)
			c.change(&s)
			trust := storestate.TrustPD(kv(1), s)
			assert.Equal(t, c.reason == "", trust.IsAllowed(), trust.Reason())
			if c.reason != "" {
				assert.Equal(t, c.reason, storestate.DistrustReason(s))
			}
		})
	}
}

func TestKV18LabelsThatStoresLack(t *testing.T) {
	on := func(i *v1alpha1.Instance, node string) *v1alpha1.Instance { i.Status.NodeName = node; return i }
	user := map[string]v1alpha1.StoreLabelValue{"disk": "ssd"}
	labelled := at(0, "1", "Up")
	labelled.Labels = map[string]string{"zone": "z1", "disk": "ssd", "mine": "x"}
	leaving := storeInstance(0, "1")
	leaving.DeletionTimestamp = ptr.To(metav1.Now())
	for name, c := range map[string]struct {
		instance *v1alpha1.Instance
		store    pd.Store
		want     map[string]string
	}{
		"node and spec speak":                       {on(storeInstance(0, "1"), "n1"), at(0, "1", "Up"), map[string]string{"zone": "z1", "disk": "ssd"}},
		"a node that is not known yet says nothing": {on(storeInstance(0, "1"), "n9"), at(0, "1", "Up"), map[string]string{"disk": "ssd"}},
		"what is there is not set again":            {on(storeInstance(0, "1"), "n1"), labelled, nil},
		"a store that is not ours is left alone":    {on(storeInstance(0, "7"), "n1"), at(0, "1", "Up"), nil},
		"an Instance that goes is left alone":       {leaving, at(0, "1", "Up"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := snapshot([]*v1alpha1.Instance{c.instance}, c.store)
			s.Nodes = map[string]map[string]string{"n1": {"topology.kubernetes.io/zone": "z1"}}
			changes := placement.LabelChanges(s, storestate.Matches(kv(1), s, v1alpha1.PortTiKV), user, nil)
			if c.want == nil {
				assert.Empty(t, changes)
				assert.Equal(t, step.KindDone, placement.LabelsPending(changes).Kind)
				return
			}
			assert.Equal(t, []placement.LabelChange{{Instance: "kv-0", StoreID: "1", Labels: c.want}}, changes)
			assert.Equal(t, step.KindWait, placement.LabelsPending(changes).Kind)
		})
	}
}

func TestLabelsThatPDRefusesAreNamed(t *testing.T) {
	assert.Empty(t, placement.CheckLabels(map[string]v1alpha1.StoreLabelValue{"disk": "ssd", "a/b": "c.d"}))
	for key, value := range map[string]v1alpha1.StoreLabelValue{
		"zone": "x", "Zone": "x", "engine": "tiflash", "ENGINE": "tiflash", "exclusive": "x", "Exclusive": "x", "k/x": "y", "K/x": "y", "$x": "y", "disk": "", "rack": "two words",
	} {
		problems := placement.CheckLabels(map[string]v1alpha1.StoreLabelValue{key: value})
		require.Len(t, problems, 1, key)
		assert.Contains(t, problems[0], "spec.storeLabels["+key+"]")
	}
	assert.Equal(t, []string{`spec.storeLabels[disk]: "disk" is the same label as "Disk" to PD: remove one of the two`},
		placement.CheckLabels(map[string]v1alpha1.StoreLabelValue{"disk": "a", "Disk": "b", "rack": "c"}))
}
