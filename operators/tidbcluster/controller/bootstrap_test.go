package controller

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/tidbcluster/bootstrap"
	"github.com/tidb-groups/tidb-groups/shared/conditions"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/testkit/machine"
	"github.com/tidb-groups/tidb-groups/shared/testkit/stage"
)

// fromMonday has a cluster with TiProxies begin with Backup monday.
func fromMonday(c *v1alpha1.TidbCluster) {
	proxied(c)
	c.Spec.BootstrapFrom = &v1alpha1.BootstrapFrom{RestoreSource: v1alpha1.RestoreSource{Backup: &v1alpha1.LocalReference{Name: "monday"}}}
}

// closed lists the groups that let no client in.
func (w *world) closed() []string {
	w.Helper()
	var out []string
	for name, g := range w.groups() {
		if of, is := g.(v1alpha1.ClientGroup); is && of.IsClosed() {
			out = append(out, name)
		}
	}
	return out
}

// restore waits for the Restore of the cluster.
func (w *world) restore() *v1alpha1.Restore {
	w.Helper()
	r := &v1alpha1.Restore{}
	require.Eventually(w, func() bool { return w.Client.Get(w.Context(), w.Key("basic-bootstrap"), r) == nil }, machine.StretchWait(stage.Timeout), stage.Tick)
	return r
}

// end plays the backup operator: the Restore ends so.
func (w *world) end(r *v1alpha1.Restore, with step.Outcome) {
	w.Helper()
	set := conditions.New(nil, r.Generation, clock())
	set.Finish(conditions.Verdict{Serving: with.Kind == step.KindDone, Summary: "complete", Outcome: with})
	before := r.DeepCopy()
	r.Status.Conditions, r.Status.CompletionTime = set.List(), &metav1.Time{Time: clock()}
	require.NoError(w, w.Client.Status().Patch(w.Context(), r, client.MergeFrom(before)))
}

func TestBR04NoClientConnectsBeforeTheDataIsRestored(t *testing.T) {
	w := begin(t)
	w.create(fromMonday)
	r := w.restore()
	assert.Equal(t, "basic-tidb", r.Spec.TiDBGroup.Name)
	require.EventuallyWithT(t, func(c *assert.CollectT) { assert.Len(c, w.groups(), 6) }, machine.StretchWait(stage.Timeout), stage.Tick)
	both := []string{"TiDBGroup basic-tidb", "TiProxyGroup basic-tiproxy"}
	assert.ElementsMatch(t, both, w.closed())
	w.everythingReady()
	w.WaitForVerdict(stage.Timeout, v1alpha1.ConditionReady, "False/WaitingForRestore")

	w.end(r, step.Stall(v1alpha1.ReasonDatabaseNotEmpty, "the cluster has databases of users: shop"))
	w.WaitForVerdict(stage.Timeout, v1alpha1.ConditionStalled, "True/DatabaseNotEmpty")
	assert.ElementsMatch(t, both, w.closed())

	w.end(r, step.Done())
	require.EventuallyWithT(t, func(c *assert.CollectT) { assert.Empty(c, w.closed()) }, machine.StretchWait(stage.Timeout), stage.Tick)
	w.everythingReady()
	c := w.WaitUntilConverged()
	require.NotNil(t, c.Status.RestoredAt)
	var events eventsv1.EventList
	require.NoError(t, w.Client.List(w.Context(), &events, client.InNamespace(w.Namespace)))
	for _, e := range events.Items {
		assert.NotEqual(t, "SetBack", e.Reason, "no other writer has closed it")
	}
	assert.Equal(t, clock(), c.Status.RestoredAt.UTC())

	// Nothing of it is looked at any more.
	require.NoError(t, w.Client.Delete(w.Context(), r))
	w.Change(func(c *v1alpha1.TidbCluster) { c.Spec.TiDB[0].MaxSurge = new(int32) })
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		tidb, _ := w.groups()["TiDBGroup basic-tidb"].(*v1alpha1.TiDBGroup)
		assert.Zero(c, *tidb.Spec.MaxSurge)
	}, machine.StretchWait(stage.Timeout), stage.Tick)
	w.everythingReady()
	w.WaitUntilConverged()
	assert.Empty(t, w.closed())
	assert.True(t, apierrors.IsNotFound(w.Client.Get(w.Context(), w.Key("basic-bootstrap"), &v1alpha1.Restore{})))
}

func TestBootstrapFromCanBeGivenUpAndNotAdded(t *testing.T) {
	w := begin(t)
	w.create(fromMonday)
	r := w.restore()
	edit := func(change func(*v1alpha1.TidbCluster)) error {
		c := w.Get()
		before := c.DeepCopy()
		change(c)
		return w.Client.Patch(w.Context(), c, client.MergeFrom(before))
	}
	err := edit(func(c *v1alpha1.TidbCluster) { c.Spec.BootstrapFrom.Backup.Name = "tuesday" })
	require.ErrorContains(t, err, "bootstrapFrom is done once")
	err = edit(func(c *v1alpha1.TidbCluster) { c.Spec.TiDB = nil })
	require.ErrorContains(t, err, "bootstrapFrom needs an entry of spec.tidb")
	require.NoError(t, edit(func(c *v1alpha1.TidbCluster) { c.Spec.BootstrapFrom.NodeSelector = map[string]string{"disk": "fast"} }))
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		assert.NoError(c, w.Client.Get(w.Context(), client.ObjectKeyFromObject(r), r))
		assert.Equal(c, "fast", r.Spec.NodeSelector["disk"])
	}, machine.StretchWait(stage.Timeout), stage.Tick)

	require.NoError(t, edit(func(c *v1alpha1.TidbCluster) { c.Spec.BootstrapFrom = nil }))
	// No garbage collector runs here: the Restore goes when the test takes its finalizer.
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		assert.NoError(c, w.Client.Get(w.Context(), client.ObjectKeyFromObject(r), r))
		assert.NotNil(c, r.DeletionTimestamp)
	}, machine.StretchWait(stage.Timeout), stage.Tick)
	assert.Len(t, w.closed(), 2, "what it has begun to write is not stopped yet")
	before := r.DeepCopy()
	r.Finalizers = nil
	require.NoError(t, w.Client.Patch(w.Context(), r, client.MergeFrom(before)))
	require.EventuallyWithT(t, func(c *assert.CollectT) { assert.Empty(c, w.closed()) }, machine.StretchWait(stage.Timeout), stage.Tick)

	err = edit(fromMonday)
	require.ErrorContains(t, err, "it may be removed later, not added")
}

// The Restore waits, such as for its Backup, and the entry of the group that it names gets another name.
func TestARestoreFollowsARenamedEntry(t *testing.T) {
	w := begin(t)
	w.create(fromMonday)
	r := w.restore()
	w.Change(func(c *v1alpha1.TidbCluster) { c.Spec.TiDB[0].Name = "oltp" })
	// No garbage collector runs here: the Restore goes when the test takes its finalizer.
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		assert.NoError(c, w.Client.Get(w.Context(), client.ObjectKeyFromObject(r), r))
		assert.NotNil(c, r.DeletionTimestamp)
	}, machine.StretchWait(stage.Timeout), stage.Tick)
	before := r.DeepCopy()
	r.Finalizers = nil
	require.NoError(t, w.Client.Patch(w.Context(), r, client.MergeFrom(before)))
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		next := &v1alpha1.Restore{}
		assert.NoError(c, w.Client.Get(w.Context(), client.ObjectKeyFromObject(r), next))
		assert.Equal(c, "basic-tidb-oltp", next.Spec.TiDBGroup.Name)
	}, machine.StretchWait(stage.Timeout), stage.Tick)
	assert.Contains(t, w.closed(), "TiDBGroup basic-tidb-oltp")
}

func TestNoRestoreWritesIntoAGroupOfAnotherOwner(t *testing.T) {
	c := stored(t, fromMonday)
	s := made(c, step.Done())
	theirs := s.groups[groupKey{v1alpha1.KindTiDBGroup, "basic-tidb"}]
	theirs.SetOwnerReferences(nil)
	theirs.SetLabels(nil)
	p := makePlan(c, s) // observe has found no group to write through
	assert.Nil(t, p.Bootstrap.Make)
	s.bootstrap = bootstrap.Seen{Through: "basic-tidb"}
	assert.NotNil(t, makePlan(c, s).Bootstrap.Make)
}
