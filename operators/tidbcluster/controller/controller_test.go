package controller

import (
	"context"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/gate"
	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/rollout"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/testkit/machine"
	"github.com/tidb-groups/tidb-groups/shared/testkit/stage"
)

// created creates the sample and waits for its groups.
func created(t *testing.T) *world {
	t.Helper()
	w := begin(t)
	w.create()
	require.Eventually(t, func() bool { return len(w.groups()) == 4 }, machine.StretchWait(stage.Promptly), stage.Tick)
	return w
}

// everythingReady says of every group that it is Ready.
func (w *world) everythingReady() {
	w.Helper()
	for _, g := range w.groups() {
		w.WriteGroupStatus(g, step.Done())
	}
}

func TestAClusterMakesItsGroupsAndMirrorsTheirStatus(t *testing.T) {
	w := created(t)
	assert.Equal(t, []string{"PDGroup basic-pd", "TiDBGroup basic-tidb", "TiFlashGroup basic-tiflash", "TiKVGroup basic-tikv"},
		slices.Sorted(maps.Keys(w.groups())))
	for name, g := range w.groups() {
		assert.Equal(t, "basic", metav1.GetControllerOf(g).Name, name)
		assert.Equal(t, "v8.5.7", g.GetComponentSpec().Version, name)
		assert.Equal(t, "basic-pd", g.PDGroupName(), name)
	}
	w.WaitForVerdict(stage.Promptly, v1alpha1.ConditionReady, "False/WaitingForGroups")
	w.everythingReady()
	c := w.WaitUntilConverged()
	assert.Equal(t, stage.ClusterID, c.Status.ClusterID)
	assert.Equal(t, "basic-tidb:4000", c.Status.Endpoint)
	require.Len(t, c.Status.Groups, 4)
	assert.Equal(t, v1alpha1.GroupSummary{Name: "basic-pd", Kind: "PDGroup", Ready: "True", Replicas: 3, ReadyReplicas: 3, Reason: "Ready"}, c.Status.Groups[0])
	assert.Equal(t, "4 of 4 groups are Ready", stage.Message(c, v1alpha1.ConditionReady))
}

func TestTheStatusOfAGroupReachesTheCluster(t *testing.T) {
	w := created(t)
	w.everythingReady()
	w.WaitUntilConverged()
	w.WriteGroupStatus(&v1alpha1.TiKVGroup{ObjectMeta: metav1.ObjectMeta{Name: "basic-tikv"}}, step.Wait("PD", time.Minute, v1alpha1.ReasonStoresUnhealthy, "store 4 is Down"))
	c := w.WaitForVerdict(stage.Promptly, v1alpha1.ConditionReady, "False/StoresUnhealthy")
	assert.Contains(t, stage.Dump(c), "TiKVGroup basic-tikv: store 4 is Down")
	w.WriteGroupStatus(&v1alpha1.TiKVGroup{ObjectMeta: metav1.ObjectMeta{Name: "basic-tikv"}}, step.Stall(v1alpha1.ReasonInvalidSpec, "spec.config: correct it"))
	c = w.WaitForVerdict(stage.Promptly, v1alpha1.ConditionStalled, "True/InvalidSpec")
	assert.Contains(t, stage.Message(c, v1alpha1.ConditionStalled), "TiKVGroup basic-tikv: spec.config: correct it")
}

// VOL-04: the group refuses what would shrink its volumes, and the cluster says so.
func TestAShrinkIsRefusedByTheGroupAndReported(t *testing.T) {
	w := created(t)
	w.everythingReady()
	w.WaitUntilConverged()
	size := func(text string) {
		w.Change(func(c *v1alpha1.TidbCluster) { c.Spec.TiKV[0].Volumes[0].Storage = resource.MustParse(text) })
	}
	was := w.groups()["TiKVGroup basic-tikv"].GetComponentSpec().Volumes[0].Storage
	size("1Mi")
	c := w.WaitForVerdict(stage.Promptly, v1alpha1.ConditionStalled, "True/InvalidSpec")
	assert.Contains(t, stage.Message(c, v1alpha1.ConditionStalled), "spec.volumes[].storage may only grow")
	size(was.String())
	w.WaitUntilConverged()
}

func TestAnEditReachesItsGroupAlone(t *testing.T) {
	w := created(t)
	w.everythingReady()
	w.WaitUntilConverged()
	before := w.Versions()
	w.Change(func(c *v1alpha1.TidbCluster) { c.Spec.TiDB[0].Replicas = ptr.To(int32(3)) })
	require.Eventually(t, func() bool { return w.groups()["TiDBGroup basic-tidb"].GetReplicas() == 3 }, machine.StretchWait(stage.Promptly), stage.Tick)
	after := w.Versions()
	for _, same := range []string{"PDGroup basic-pd", "TiKVGroup basic-tikv", "TiFlashGroup basic-tiflash"} {
		assert.Equal(t, before[same], after[same], same)
	}
	w.everythingReady()
	w.WaitUntilConverged()
	// What a user changes in a group is put back to what the cluster says.
	g := &v1alpha1.TiDBGroup{}
	require.NoError(t, w.Client.Get(w.Context(), client.ObjectKey{Namespace: w.Namespace, Name: "basic-tidb"}, g))
	g.Spec.Replicas = ptr.To(int32(7))
	require.NoError(t, w.Client.Update(w.Context(), g))
	require.Eventually(t, func() bool { return w.groups()["TiDBGroup basic-tidb"].GetReplicas() == 3 }, machine.StretchWait(stage.Promptly), stage.Tick)
}

// DB-18: an entry without replicas leaves them to an autoscaler, whatever else of it
// changes; one that names them again decides.
func TestDB18AnEntryWithoutReplicasLeavesTheGroupsReplicasAlone(t *testing.T) {
	w := created(t)
	tidb := func() v1alpha1.Group { return w.groups()["TiDBGroup basic-tidb"] }
	scale := func(n int32) {
		body := &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Name: "basic-tidb", Namespace: w.Namespace}, Spec: autoscalingv1.ScaleSpec{Replicas: n}}
		require.NoError(t, w.Client.SubResource("scale").Update(w.Context(), tidb(), client.WithSubResourceBody(body)))
	}
	edit := func(version string, replicas *int32) {
		w.Change(func(c *v1alpha1.TidbCluster) { c.Spec.TiDB[0].Version, c.Spec.TiDB[0].Replicas = version, replicas })
		require.Eventually(t, func() bool { return tidb().GetComponentSpec().Version == version }, machine.StretchWait(stage.Promptly), stage.Tick)
		w.everythingReady()
		w.WaitUntilConverged()
	}
	edit("v8.5.8", ptr.To(int32(4)))
	edit("v8.5.9", nil)
	assert.EqualValues(t, 4, tidb().GetReplicas(), "taken out of the entry it stays what it was")
	scale(6)
	w.everythingReady()
	w.WaitUntilConverged()
	edit("v8.6.0", nil)
	assert.EqualValues(t, 6, tidb().GetReplicas(), "an edit of the entry does not take it back")
	c := w.Get()
	at := slices.IndexFunc(c.Status.Groups, func(s v1alpha1.GroupSummary) bool { return s.Name == "basic-tidb" })
	assert.EqualValues(t, 6, c.Status.Groups[at].Replicas)
	scale(3)
	edit("v8.6.1", nil)
	assert.EqualValues(t, 3, tidb().GetReplicas())
	edit("v8.6.2", ptr.To(int32(2)))
	assert.EqualValues(t, 2, tidb().GetReplicas())
	w.Change(func(c *v1alpha1.TidbCluster) { c.Spec.TiDB = append(c.Spec.TiDB, v1alpha1.TiDBEntry{Name: "batch"}) })
	require.Eventually(t, func() bool { return w.groups()["TiDBGroup basic-tidb-batch"] != nil }, machine.StretchWait(stage.Promptly), stage.Tick)
	assert.EqualValues(t, 2, w.groups()["TiDBGroup basic-tidb-batch"].GetReplicas(), "a new group begins with the default")
}

// What a cache that lags shows deletes no group.
func TestNoGroupIsPrunedByAnOldVersionOfTheTidbCluster(t *testing.T) {
	w := created(t)
	r := &Reconciler{operator.Env{Live: w.Client, Client: w.Client}}
	for name, change := range map[string]func(*v1alpha1.TidbCluster){
		"an entry was put back": func(c *v1alpha1.TidbCluster) { c.Generation-- },
		"the consent was withdrawn": func(c *v1alpha1.TidbCluster) {
			c.Annotations = map[string]string{v1alpha1.AnnotationAllowRemoval: "basic-tikv"}
		},
		"it was created again": func(c *v1alpha1.TidbCluster) { c.UID = "before" },
	} {
		old := w.Get().DeepCopy()
		change(old)
		assert.Equal(t, step.KindAfter, r.prune(t.Context(), old, w.groups()["TiDBGroup basic-tidb"]).Kind, name)
	}
	assert.Contains(t, w.groups(), "TiDBGroup basic-tidb")
}

func TestAnEntryThatIsRemovedIsPrunedAndNothingElse(t *testing.T) {
	w := created(t)
	stranger := &v1alpha1.TiFlashGroup{ObjectMeta: metav1.ObjectMeta{Name: "mine", Namespace: w.Namespace, Labels: map[string]string{v1alpha1.LabelUmbrella: "basic"}}}
	stranger.Spec.Version, stranger.Spec.PDGroup.Name = "v8.5.7", "basic-pd"
	stranger.Spec.Volumes = []v1alpha1.Volume{{Name: "data0", Storage: resource.MustParse("1Gi")}}
	require.NoError(t, w.Client.Create(w.Context(), stranger))
	w.Change(func(c *v1alpha1.TidbCluster) { c.Spec.TiFlash = nil })
	// It may hold data, and is kept and marked; scaled to 0 it may go.
	held := w.WaitForVerdict(stage.Promptly, v1alpha1.ConditionStalled, "True/EntryRemoved")
	assert.Contains(t, stage.Dump(held), "TiFlashGroup basic-tiflash")
	g, ok := w.groups()["TiFlashGroup basic-tiflash"].(*v1alpha1.TiFlashGroup)
	require.True(t, ok, "it is kept")
	g.Spec.Replicas = ptr.To(int32(0))
	require.NoError(t, w.Client.Update(w.Context(), g))
	w.everythingReady()
	require.Eventually(t, func() bool { _, there := w.groups()["TiFlashGroup basic-tiflash"]; return !there }, machine.StretchWait(stage.Promptly), stage.Tick)
	assert.Contains(t, w.groups(), "TiFlashGroup mine", "only what the cluster owns is pruned")
	// The cluster was Ready before the group went, too.
	require.Eventually(t, func() bool { return len(w.Get().Status.Groups) == 3 }, machine.StretchWait(stage.Promptly), stage.Tick)
	w.WaitUntilConverged()
	w.Change(func(c *v1alpha1.TidbCluster) {
		c.Spec.TiDB = append(c.Spec.TiDB, v1alpha1.TiDBEntry{Name: "batch"})
	})
	require.Eventually(t, func() bool { return w.groups()["TiDBGroup basic-tidb-batch"] != nil }, machine.StretchWait(stage.Promptly), stage.Tick)
}

func TestAGroupOfAnotherOwnerIsNeverTouched(t *testing.T) {
	w := begin(t)
	foreign := &v1alpha1.PDGroup{ObjectMeta: metav1.ObjectMeta{Name: "basic-pd", Namespace: w.Namespace}}
	foreign.Spec.Version = "v1"
	foreign.Spec.Volumes = []v1alpha1.Volume{{Name: "data", Storage: resource.MustParse("1Gi")}}
	require.NoError(t, w.Client.Create(w.Context(), foreign))
	w.create()
	c := w.WaitForVerdict(stage.Promptly, v1alpha1.ConditionStalled, "True/NameConflict")
	assert.Contains(t, stage.Dump(c), "PDGroup basic-pd exists and was not made by this TidbCluster")
	assert.Len(t, w.groups(), 1, "nothing is made that would join another owner's PD")
	was := foreign.ResourceVersion
	require.NoError(t, w.Client.Get(w.Context(), client.ObjectKeyFromObject(foreign), foreign))
	assert.Equal(t, was, foreign.ResourceVersion)
	require.NoError(t, w.Client.Delete(w.Context(), foreign))
	w.WaitForVerdict(stage.Promptly, v1alpha1.ConditionReady, "False/WaitingForGroups")
	require.Eventually(t, func() bool { return len(w.groups()) == 4 }, machine.StretchWait(stage.Promptly), stage.Tick)
	assert.Equal(t, "v8.5.7", w.groups()["PDGroup basic-pd"].GetComponentSpec().Version)
}

// P7.
func TestResourcesThatAreTakenAwayAreTakenFromTheGroup(t *testing.T) {
	w := created(t)
	has := func(want bool) func() bool {
		return func() bool {
			return (len(w.groups()["TiFlashGroup basic-tiflash"].GetComponentSpec().Resources.Requests) > 0) == want
		}
	}
	w.Change(func(c *v1alpha1.TidbCluster) {
		c.Spec.TiFlash[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m")}
	})
	require.Eventually(t, has(true), machine.StretchWait(stage.Promptly), stage.Tick)
	w.Change(func(c *v1alpha1.TidbCluster) { c.Spec.TiFlash[0].Resources = v1alpha1.Resources{} })
	require.Eventually(t, has(false), machine.StretchWait(stage.Promptly), stage.Tick)
}

// P7: what says nothing more when it is encoded, {}, takes back what it said before.
func TestARemovedFieldReachesTheGroup(t *testing.T) {
	w := created(t)
	tikv := func() *v1alpha1.TiKVGroup { return w.groups()["TiKVGroup basic-tikv"].(*v1alpha1.TiKVGroup) }
	canary := func() int32 {
		if d := tikv().Spec.Disruption; d != nil {
			return ptr.Deref(d.UpdateAtMost, 0)
		}
		return 0
	}
	edit := func(what string, change func(c *v1alpha1.TidbCluster), arrived func() bool) {
		w.Change(change)
		require.Eventually(t, arrived, machine.StretchWait(stage.Promptly), stage.Tick, what)
	}
	all := func(paused bool) func() bool {
		return func() bool {
			for _, g := range w.groups() {
				if d := g.GetComponentSpec().Disruption; paused != (d != nil && d.Paused) || !paused && d != nil {
					return false
				}
			}
			return true
		}
	}
	edit("the cluster's pause", func(c *v1alpha1.TidbCluster) { c.Spec.Disruption = &v1alpha1.Disruption{Paused: true} }, all(true))
	edit("its end", func(c *v1alpha1.TidbCluster) { c.Spec.Disruption = &v1alpha1.Disruption{} }, all(false))
	edit("a canary of the cluster", func(c *v1alpha1.TidbCluster) {
		c.Spec.Disruption = &v1alpha1.Disruption{UpdateAtMost: ptr.To(int32(1))}
	},
		func() bool { return canary() == 1 })
	edit("an entry that has none", func(c *v1alpha1.TidbCluster) { c.Spec.TiKV[0].Disruption = &v1alpha1.Disruption{} },
		func() bool { return tikv().Spec.Disruption == nil })
	edit("a canary of the entry", func(c *v1alpha1.TidbCluster) {
		c.Spec.TiKV[0].Disruption = &v1alpha1.Disruption{UpdateAtMost: ptr.To(int32(2))}
	}, func() bool { return canary() == 2 })
	edit("its end", func(c *v1alpha1.TidbCluster) { c.Spec.TiKV[0].Disruption = &v1alpha1.Disruption{} },
		func() bool { return tikv().Spec.Disruption == nil })
	edit("an exclusive placement", func(c *v1alpha1.TidbCluster) { c.Spec.TiKV[0].Placement = &v1alpha1.StorePlacement{Exclusive: true} },
		func() bool { return tikv().Spec.Placement != nil && tikv().Spec.Placement.Exclusive })
	edit("its end", func(c *v1alpha1.TidbCluster) { c.Spec.TiKV[0].Placement = &v1alpha1.StorePlacement{} },
		func() bool { return tikv().Spec.Placement == nil })
}

// P7: in what Kubernetes' own types stand in, nothing and {} are not the same, and a
// patch says something with null, {} and [].
func TestAnEmptyFieldWithAMeaningReachesTheGroup(t *testing.T) {
	w := created(t)
	for field, of := range map[string]func(*v1alpha1.ComponentSpec) **runtime.RawExtension{
		"affinity":        func(s *v1alpha1.ComponentSpec) **runtime.RawExtension { return &s.Affinity },
		"securityContext": func(s *v1alpha1.ComponentSpec) **runtime.RawExtension { return &s.SecurityContext },
		"overlay":         func(s *v1alpha1.ComponentSpec) **runtime.RawExtension { return &s.Overlay },
	} {
		for _, said := range []string{"{}", "", `{"a":{"b":{"c":1,"d":[]}}}`, `{"a":{"b":{}}}`, `{"a":{"b":null}}`, `{"a":{}}`, `{"a":[]}`, "{}"} {
			w.Change(func(c *v1alpha1.TidbCluster) {
				raw := of(&c.Spec.TiKV[0].ComponentSpec)
				*raw = nil
				if said != "" {
					*raw = &runtime.RawExtension{Raw: []byte(said)}
				}
			})
			require.Eventually(t, func() bool {
				raw := *of(w.groups()["TiKVGroup basic-tikv"].GetComponentSpec())
				return raw == nil && said == "" || raw != nil && string(raw.Raw) == said
			}, machine.StretchWait(stage.Promptly), stage.Tick, "%s: %s", field, said)
		}
	}
}

// Of another kind it keeps nothing else from being made.
func TestATiDBGroupOfAnotherOwnerBlocksNoOtherGroup(t *testing.T) {
	w := begin(t)
	foreign := &v1alpha1.TiDBGroup{ObjectMeta: metav1.ObjectMeta{Name: "basic-tidb", Namespace: w.Namespace}}
	foreign.Spec.Version, foreign.Spec.PDGroup.Name = "v1", "other"
	require.NoError(t, w.Client.Create(w.Context(), foreign))
	w.create()
	w.WaitForVerdict(stage.Promptly, v1alpha1.ConditionStalled, "True/NameConflict")
	require.Eventually(t, func() bool { return len(w.groups()) == 4 }, machine.StretchWait(stage.Promptly), stage.Tick)
}

// A cache that lags must not make another owner's group ours: what it has not
// seen is looked for in the API server before it is created.
func TestAGroupThatTheCacheHasNotSeenYetIsNotTaken(t *testing.T) {
	s := rig.Stage(t)
	c := sample(t, s.Namespace)
	c.UID = "1"
	theirs := renderGroups(c)[0]
	theirs.SetNamespace(s.Namespace)
	theirs.SetLabels(nil)
	theirs.SetOwnerReferences(nil)
	s.Create(theirs)
	r := &Reconciler{Env: operator.Env{Client: s.Client, Live: s.Client, Name: "tidbcluster"}}
	o := r.applyGroup(t.Context(), c, &groupChange{desired: renderGroups(c)[0]})
	assert.Equal(t, step.KindAfter, o.Kind, o.Message)
	there := &v1alpha1.PDGroup{}
	require.NoError(t, s.Client.Get(t.Context(), client.ObjectKeyFromObject(theirs), there))
	assert.Equal(t, theirs.GetResourceVersion(), there.ResourceVersion)
}

// GRP-07.
func TestOrphanedGroupsAreAdoptedAgain(t *testing.T) {
	w := created(t)
	uid := w.groups()["PDGroup basic-pd"].GetUID()
	require.NoError(t, w.Client.Delete(w.Context(), w.Get()))
	require.Eventually(t, func() bool {
		err := w.Client.Get(w.Context(), client.ObjectKey{Namespace: w.Namespace, Name: "basic"}, &v1alpha1.TidbCluster{})
		return apierrors.IsNotFound(err)
	}, machine.StretchWait(stage.Promptly), stage.Tick)
	// No garbage collector runs here: this is what --cascade=orphan leaves.
	for _, g := range w.groups() {
		g.SetOwnerReferences(nil)
		o, ok := g.(client.Object)
		require.True(t, ok)
		require.NoError(t, w.Client.Update(w.Context(), o))
	}
	w.create()
	require.Eventually(t, func() bool {
		c := w.Get()
		for _, g := range w.groups() {
			if owner := metav1.GetControllerOf(g); owner == nil || owner.UID != c.UID {
				return false
			}
		}
		return true
	}, machine.StretchWait(stage.Promptly), stage.Tick)
	assert.Equal(t, uid, w.groups()["PDGroup basic-pd"].GetUID())
}

// Who waits for UpToDate after an edit must not be told of what was before it.
func TestAnEditIsNotUpToDateBeforeTheGroupsHaveSeenIt(t *testing.T) {
	w := created(t)
	w.everythingReady()
	before := w.WaitUntilConverged()
	var early atomic.Bool
	w.Follow(&v1alpha1.TidbClusterList{}, func(_ context.Context, o client.Object) {
		c, ok := o.(*v1alpha1.TidbCluster)
		if ok && c.Generation > before.Generation && gate.FindCurrentCondition(c.Status.Conditions, c.Generation, v1alpha1.ConditionUpToDate) != nil &&
			stage.Verdict(c, v1alpha1.ConditionUpToDate) == "True/UpToDate" {
			early.Store(true)
		}
	})
	w.Change(func(c *v1alpha1.TidbCluster) { c.Spec.Version = "v8.5.8" })
	w.WaitForVerdict(stage.Promptly, v1alpha1.ConditionUpToDate, "False/WaitingForGroups")
	for _, g := range w.groups() {
		assert.Equal(t, "v8.5.8", g.GetComponentSpec().Version, g.GetName())
	}
	assert.False(t, early.Load())
}

// GRP-06.
func TestPauseAndSuspendArePassedToEveryGroup(t *testing.T) {
	w := created(t)
	w.Change(func(c *v1alpha1.TidbCluster) { c.Spec.Suspended = true })
	w.WaitForVerdict(stage.Promptly, v1alpha1.ConditionReady, "False/Suspended")
	w.Change(func(c *v1alpha1.TidbCluster) { c.Spec.Paused = true })
	require.Eventually(t, func() bool {
		for _, g := range w.groups() {
			if !g.GetComponentSpec().Paused || !g.GetComponentSpec().Suspended {
				return false
			}
		}
		return true
	}, machine.StretchWait(stage.Promptly), stage.Tick)
	w.WaitForVerdict(stage.Promptly, v1alpha1.ConditionPaused, "True/Paused")
	w.Change(func(c *v1alpha1.TidbCluster) { c.Spec.Paused, c.Spec.Suspended = false, false })
	require.Eventually(t, func() bool { return !w.groups()["PDGroup basic-pd"].GetComponentSpec().Paused }, machine.StretchWait(stage.Promptly), stage.Tick)
	w.everythingReady()
	w.WaitUntilConverged()
}

// GRP-06.
func TestPDIsTheLastToBeSuspendedAndTheFirstToBeResumed(t *testing.T) {
	w := created(t)
	order := func(suspended bool) []string {
		require.Eventually(t, func() bool {
			for _, g := range w.groups() {
				if g.GetComponentSpec().Suspended != suspended {
					return false
				}
			}
			return true
		}, machine.StretchWait(stage.Promptly), stage.Tick)
		groups := slices.SortedFunc(maps.Values(w.groups()), func(a, b v1alpha1.Group) int {
			order, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion())
			require.NoError(t, err)
			return order
		})
		var out []string
		for _, g := range groups {
			out = append(out, g.GroupKind())
		}
		return out
	}
	w.Change(func(c *v1alpha1.TidbCluster) { c.Spec.Suspended = true })
	upgrade := order(true)
	slices.Reverse(upgrade)
	assert.Equal(t, rollout.Order(), upgrade, "no group stops before those that use it are to stop as well")
	w.Change(func(c *v1alpha1.TidbCluster) { c.Spec.Suspended = false })
	assert.Equal(t, rollout.Order(), order(false))
}

func TestARestartedOperatorDoesNothing(t *testing.T) {
	w := created(t)
	w.everythingReady()
	w.WaitUntilConverged()
	w.WaitUntilSettled()
	calls := len(w.operator.Writes())
	again := w.Operate(Definition())
	for _, note := range []string{"one", "two"} {
		w.Touch(note)
		w.WaitUntilSettled()
	}
	assert.Empty(t, again.Writes())
	assert.Empty(t, w.operator.Writes()[calls:])
}
