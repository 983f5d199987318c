package controller

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// created creates the sample and waits for its groups.
func created(t *testing.T) *world {
	t.Helper()
	w := begin(t)
	w.create()
	require.Eventually(t, func() bool { return len(w.groups()) == 4 }, named, tick)
	return w
}

// everythingReady says of every group that it is Ready.
func (w *world) everythingReady() {
	w.Helper()
	for _, g := range w.groups() {
		w.say(g, step.Done())
	}
}

func TestAClusterBecomesItsGroupsAndMirrorsThem(t *testing.T) {
	w := created(t)
	assert.Equal(t, []string{"PDGroup basic-pd", "TiDBGroup basic-tidb", "TiFlashGroup basic-tiflash", "TiKVGroup basic-tikv"},
		slices.Sorted(maps.Keys(w.groups())))
	for name, g := range w.groups() {
		assert.Equal(t, "basic", metav1.GetControllerOf(g).Name, name)
		assert.Equal(t, "v8.5.7", g.GetComponentSpec().Version, name)
		assert.Equal(t, "basic-pd", g.PDGroupName(), name)
	}
	w.within(named, v1alpha1.ConditionReady, "False/WaitingForGroups")
	w.everythingReady()
	c := w.converged()
	assert.Equal(t, "73", c.Status.ClusterID)
	assert.Equal(t, "basic-tidb:4000", c.Status.Endpoint)
	require.Len(t, c.Status.Groups, 4)
	assert.Equal(t, v1alpha1.GroupSummary{Name: "basic-pd", Kind: "PDGroup", Ready: "True", Replicas: 3, ReadyReplicas: 3, Reason: "Ready"}, c.Status.Groups[0])
	assert.Equal(t, "4 of 4 groups are Ready", meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionReady).Message)
}

func TestWhatAGroupSaysReachesTheCluster(t *testing.T) {
	w := created(t)
	w.everythingReady()
	w.converged()
	w.say(&v1alpha1.TiKVGroup{ObjectMeta: metav1.ObjectMeta{Name: "basic-tikv"}}, step.Wait("PD", time.Minute, v1alpha1.ReasonStoresUnhealthy, "store 4 is Down"))
	c := w.within(named, v1alpha1.ConditionReady, "False/StoresUnhealthy")
	assert.Contains(t, dump(c.Status.Conditions), "TiKVGroup basic-tikv: store 4 is Down")
	w.say(&v1alpha1.TiKVGroup{ObjectMeta: metav1.ObjectMeta{Name: "basic-tikv"}}, step.Stall(v1alpha1.ReasonInvalidSpec, "spec.config: correct it"))
	c = w.within(named, v1alpha1.ConditionStalled, "True/InvalidSpec")
	assert.Contains(t, meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionStalled).Message, "TiKVGroup basic-tikv: spec.config: correct it")
}

func TestAnEditReachesItsGroupAlone(t *testing.T) {
	w := created(t)
	w.everythingReady()
	w.converged()
	before := w.versions()
	w.edit(func(c *v1alpha1.TidbCluster) { c.Spec.TiDB[0].Replicas = ptr.To(int32(3)) })
	require.Eventually(t, func() bool { return w.groups()["TiDBGroup basic-tidb"].GetReplicas() == 3 }, named, tick)
	after := w.versions()
	for _, same := range []string{"PDGroup basic-pd", "TiKVGroup basic-tikv", "TiFlashGroup basic-tiflash"} {
		assert.Equal(t, before[same], after[same], same)
	}
	w.everythingReady()
	w.converged()
	// What somebody changes in a group is put back to what the cluster says.
	g := &v1alpha1.TiDBGroup{}
	require.NoError(t, api.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: "basic-tidb"}, g))
	g.Spec.Replicas = ptr.To(int32(7))
	require.NoError(t, api.Update(w.ctx, g))
	require.Eventually(t, func() bool { return w.groups()["TiDBGroup basic-tidb"].GetReplicas() == 3 }, named, tick)
}

func TestAnEntryThatIsRemovedIsPrunedAndNothingElse(t *testing.T) {
	w := created(t)
	stranger := &v1alpha1.TiFlashGroup{ObjectMeta: metav1.ObjectMeta{Name: "mine", Namespace: w.namespace, Labels: map[string]string{v1alpha1.LabelUmbrella: "basic"}}}
	stranger.Spec.Version, stranger.Spec.PDGroup.Name = "v8.5.7", "basic-pd"
	stranger.Spec.Volumes = []v1alpha1.Volume{{Name: "data0", Storage: resource.MustParse("1Gi")}}
	require.NoError(t, api.Create(w.ctx, stranger))
	w.edit(func(c *v1alpha1.TidbCluster) { c.Spec.TiFlash = nil })
	require.Eventually(t, func() bool { _, there := w.groups()["TiFlashGroup basic-tiflash"]; return !there }, named, tick)
	assert.Contains(t, w.groups(), "TiFlashGroup mine", "only what the cluster owns is pruned")
	w.everythingReady()
	c := w.converged()
	assert.Len(t, c.Status.Groups, 3)
	w.edit(func(c *v1alpha1.TidbCluster) {
		c.Spec.TiDB = append(c.Spec.TiDB, v1alpha1.TiDBEntry{Name: "batch"})
	})
	require.Eventually(t, func() bool { return w.groups()["TiDBGroup basic-tidb-batch"] != nil }, named, tick)
}

func TestAGroupOfSomebodyElseIsNeverTouched(t *testing.T) {
	w := begin(t)
	foreign := &v1alpha1.PDGroup{ObjectMeta: metav1.ObjectMeta{Name: "basic-pd", Namespace: w.namespace}}
	foreign.Spec.Version = "v1"
	foreign.Spec.Volumes = []v1alpha1.Volume{{Name: "data", Storage: resource.MustParse("1Gi")}}
	require.NoError(t, api.Create(w.ctx, foreign))
	w.create()
	c := w.within(named, v1alpha1.ConditionStalled, "True/NameConflict")
	assert.Contains(t, dump(c.Status.Conditions), "PDGroup basic-pd exists and was not made by this TidbCluster")
	require.Eventually(t, func() bool { return len(w.groups()) == 4 }, named, tick, "one conflict keeps nothing else from being made")
	was := foreign.ResourceVersion
	require.NoError(t, api.Get(w.ctx, client.ObjectKeyFromObject(foreign), foreign))
	assert.Equal(t, was, foreign.ResourceVersion)
	require.NoError(t, api.Delete(w.ctx, foreign))
	w.within(named, v1alpha1.ConditionReady, "False/WaitingForGroups")
	assert.Equal(t, "v8.5.7", w.groups()["PDGroup basic-pd"].GetComponentSpec().Version)
}

func TestOrphanedGroupsAreAdoptedAgain(t *testing.T) {
	w := created(t)
	uid := w.groups()["PDGroup basic-pd"].GetUID()
	require.NoError(t, api.Delete(w.ctx, w.get()))
	require.Eventually(t, func() bool {
		err := api.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: "basic"}, &v1alpha1.TidbCluster{})
		return apierrors.IsNotFound(err)
	}, named, tick)
	// No garbage collector runs here: this is what --cascade=orphan leaves.
	for _, g := range w.groups() {
		g.SetOwnerReferences(nil)
		o, ok := g.(client.Object)
		require.True(t, ok)
		require.NoError(t, api.Update(w.ctx, o))
	}
	w.create()
	require.Eventually(t, func() bool {
		c := w.get()
		for _, g := range w.groups() {
			if owner := metav1.GetControllerOf(g); owner == nil || owner.UID != c.UID {
				return false
			}
		}
		return true
	}, named, tick)
	assert.Equal(t, uid, w.groups()["PDGroup basic-pd"].GetUID())
}

func TestPauseAndSuspendAreHandedDown(t *testing.T) {
	w := created(t)
	w.edit(func(c *v1alpha1.TidbCluster) { c.Spec.Suspended = true })
	w.within(named, v1alpha1.ConditionReady, "False/Suspended")
	w.edit(func(c *v1alpha1.TidbCluster) { c.Spec.Paused = true })
	require.Eventually(t, func() bool {
		for _, g := range w.groups() {
			if !g.GetComponentSpec().Paused || !g.GetComponentSpec().Suspended {
				return false
			}
		}
		return true
	}, named, tick)
	w.within(named, v1alpha1.ConditionPaused, "True/Paused")
	w.edit(func(c *v1alpha1.TidbCluster) { c.Spec.Paused, c.Spec.Suspended = false, false })
	require.Eventually(t, func() bool { return !w.groups()["PDGroup basic-pd"].GetComponentSpec().Paused }, named, tick)
	w.everythingReady()
	w.converged()
}

func TestARestartedOperatorDoesNothing(t *testing.T) {
	w := created(t)
	w.everythingReady()
	w.converged()
	settle := func() map[string]string {
		var before map[string]string
		require.Eventually(t, func() bool {
			last := before
			before = w.versions()
			return assert.ObjectsAreEqual(last, before)
		}, patience, 10*tick)
		return before
	}
	settle()
	calls := len(w.writes.list())
	again := &world{T: t, ctx: w.ctx, namespace: w.namespace, writes: &writes{}}
	again.operate()
	for _, note := range []string{"one", "two"} {
		w.touch(note)
		settle()
	}
	assert.Empty(t, again.writes.list())
	assert.Empty(t, w.writes.list()[calls:])
}
