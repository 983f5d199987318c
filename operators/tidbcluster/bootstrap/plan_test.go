package bootstrap

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/conditions"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

func clock() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

// cluster begins with Backup monday.
func cluster() *v1alpha1.TidbCluster {
	c := &v1alpha1.TidbCluster{ObjectMeta: metav1.ObjectMeta{Name: "basic", Namespace: "ns", UID: "cluster-uid"}}
	c.Spec.BootstrapFrom = &v1alpha1.BootstrapFrom{
		RestoreSource: v1alpha1.RestoreSource{Backup: &v1alpha1.LocalReference{Name: "monday"}},
		Login:         v1alpha1.Login{PasswordSecret: &v1alpha1.KeyReference{Name: "basic-tidb-root", Key: "password"}},
		RunPod:        v1alpha1.RunPod{NodeSelector: map[string]string{"disk": "fast"}},
	}
	return c
}

// restore is that of the cluster, which has said so.
func restore(c *v1alpha1.TidbCluster, end step.Outcome) *v1alpha1.Restore {
	r := renderRestore(c, "basic-tidb")
	r.Generation = 1
	set := conditions.New(nil, 1, clock())
	set.Finish(conditions.Verdict{Serving: end.Kind == step.KindDone, Summary: "complete", Outcome: end})
	r.Status.Conditions = set.List()
	if end.Kind == step.KindDone {
		r.Status.CompletionTime = &metav1.Time{Time: clock()}
	}
	return r
}

func TestBR04AClusterBeginsWithTheDataOfABackup(t *testing.T) {
	working := step.Wait("Job", time.Minute, v1alpha1.ReasonJobRunning, "Job basic-bootstrap-restore-1 runs")
	empty := step.Stall(v1alpha1.ReasonDatabaseNotEmpty, "the cluster has databases of users: shop")
	at := &metav1.Time{Time: clock()}
	for name, c := range map[string]struct {
		edit   func(*v1alpha1.TidbCluster, *Seen)
		closed bool
		makes  bool
		done   *metav1.Time
		kind   step.Kind
		reason string
		says   []string
	}{
		"its group is not there": {func(_ *v1alpha1.TidbCluster, s *Seen) { s.Through = "" }, true, false, nil, step.KindWait, v1alpha1.ReasonWaitingForRestore, []string{"is made when the first TiDBGroup is"}},
		"its group is there":     {nil, true, true, nil, step.KindWait, v1alpha1.ReasonCreating, []string{"creating Restore basic-bootstrap"}},
		"the run goes on":        {func(c *v1alpha1.TidbCluster, s *Seen) { s.Restore = restore(c, working) }, true, true, nil, step.KindWait, v1alpha1.ReasonWaitingForRestore, []string{"no client is let in before Restore basic-bootstrap is complete: Job basic-bootstrap-restore-1 runs"}},
		"the run has failed when it had begun": {func(c *v1alpha1.TidbCluster, s *Seen) {
			s.Restore = restore(c, empty)
			s.Restore.Status.State = v1alpha1.RunFailed
		}, true, true, nil, step.KindStall, v1alpha1.ReasonDatabaseNotEmpty, []string{"; or begin with the part of its data that is there: kubectl -n ns patch tidbcluster basic"}},
		"the run needs a user": {func(c *v1alpha1.TidbCluster, s *Seen) { s.Restore = restore(c, empty) }, true, true, nil, step.KindStall, v1alpha1.ReasonDatabaseNotEmpty, []string{"databases of users: shop; or begin without its data: kubectl -n ns patch tidbcluster basic --type=merge -p '{\"spec\":{\"bootstrapFrom\":null}}'"}},
		"its operator does not run": {func(c *v1alpha1.TidbCluster, s *Seen) {
			s.Restore, s.Overdue = restore(c, working), true
			s.Restore.Status.Conditions = nil
		}, true, true, nil, step.KindWait, v1alpha1.ReasonWaitingForRestore, []string{"is the backup operator running?"}},
		"it was changed just now": {func(c *v1alpha1.TidbCluster, s *Seen) { s.Restore = restore(c, working); s.Restore.Generation = 2 }, true, true, nil, step.KindWait, v1alpha1.ReasonWaitingForRestore, []string{"has not processed it yet"}},
		"it is being deleted": {func(c *v1alpha1.TidbCluster, s *Seen) {
			s.Restore = restore(c, working)
			s.Restore.DeletionTimestamp = at
		}, true, false, nil, step.KindWait, v1alpha1.ReasonWaitingForRestore, nil},
		"the cluster is paused": {func(c *v1alpha1.TidbCluster, _ *Seen) { c.Spec.Paused = true }, true, false, nil, step.KindWait, v1alpha1.ReasonCreating, nil},
		"another owner's Restore": {func(c *v1alpha1.TidbCluster, s *Seen) {
			s.Restore = restore(c, step.Done())
			s.Restore.OwnerReferences = nil
		}, true, false, nil, step.KindStall, v1alpha1.ReasonNameConflict, []string{"kubectl -n ns delete restore basic-bootstrap"}},
		"that is being deleted": {func(c *v1alpha1.TidbCluster, s *Seen) {
			s.Restore = restore(c, step.Done())
			s.Restore.OwnerReferences, s.Restore.DeletionTimestamp = nil, at
		}, true, false, nil, step.KindWait, v1alpha1.ReasonDeleting, []string{"Restore basic-bootstrap, which was not made by this TidbCluster, is being deleted"}},
		"that of a deleted cluster of the same name": {func(c *v1alpha1.TidbCluster, s *Seen) {
			s.Restore = restore(c, step.Done())
			s.Restore.OwnerReferences[0].UID = "before"
		}, true, false, nil, step.KindWait, v1alpha1.ReasonDeleting, []string{"Restore basic-bootstrap belongs to a deleted TidbCluster of the same name"}},
		"the run is complete":      {func(c *v1alpha1.TidbCluster, s *Seen) { s.Restore = restore(c, step.Done()) }, false, false, at, step.KindDone, "", nil},
		"complete, and changed":    {func(c *v1alpha1.TidbCluster, s *Seen) { s.Restore = restore(c, step.Done()); s.Restore.Generation = 2 }, false, false, at, step.KindDone, "", nil},
		"that stands in status":    {func(c *v1alpha1.TidbCluster, s *Seen) { c.Status.RestoredAt = at }, false, false, at, step.KindDone, "", nil},
		"… and the Restore failed": {func(c *v1alpha1.TidbCluster, s *Seen) { c.Status.RestoredAt, s.Restore = at, restore(c, empty) }, false, false, at, step.KindDone, "", nil},
		"clients are in already":   {func(_ *v1alpha1.TidbCluster, s *Seen) { s.Open = "TiDBGroup basic-tidb" }, false, false, nil, step.KindStall, v1alpha1.ReasonInvalidSpec, []string{"spec.bootstrapFrom: TiDBGroup basic-tidb lets clients in already", "{\"bootstrapFrom\":null}"}},
		"nothing is asked for":     {func(c *v1alpha1.TidbCluster, s *Seen) { c.Spec.BootstrapFrom = nil }, false, false, nil, step.KindDone, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			cluster, seen := cluster(), Seen{Through: "basic-tidb"}
			if c.edit != nil {
				c.edit(cluster, &seen)
			}
			p := MakePlan(cluster, seen)
			assert.Equal(t, c.closed, p.Closed)
			assert.Equal(t, c.makes, p.Make != nil)
			assert.Equal(t, c.done, p.RestoredAt)
			assert.Equal(t, c.kind, p.Outcome.Kind)
			assert.Equal(t, c.reason, p.Outcome.Reason)
			assert.Nil(t, p.Remove)
			for _, said := range c.says {
				assert.Contains(t, p.Outcome.Message, said)
			}
		})
	}
}

func TestAClusterReportsTheStateOfItsRestore(t *testing.T) {
	c := cluster()
	r := MakePlan(c, Seen{Through: "basic-tidb"}).Make
	require.NotNil(t, r)
	assert.Equal(t, "basic-bootstrap", r.Name)
	assert.True(t, metav1.IsControlledBy(r, c))
	assert.Equal(t, v1alpha1.RestoreSpec{
		TiDBGroup: v1alpha1.LocalReference{Name: "basic-tidb"}, From: c.Spec.BootstrapFrom.RestoreSource,
		Login: c.Spec.BootstrapFrom.Login, RunPod: c.Spec.BootstrapFrom.RunPod,
	}, r.Spec)
	// A group that comes first later is not the one that the run writes through.
	again := MakePlan(c, Seen{Through: "basic-tidb-a", Restore: r})
	assert.Equal(t, "basic-tidb", again.Make.Spec.TiDBGroup.Name)
	assert.Same(t, r, again.Live)
}

func TestACancelledRestoreIsStoppedBeforeClientsConnect(t *testing.T) {
	c := cluster()
	r := restore(c, step.Wait("Job", time.Minute, v1alpha1.ReasonJobRunning, "it runs"))
	c.Spec.BootstrapFrom = nil
	p := MakePlan(c, Seen{Through: "basic-tidb", Restore: r})
	assert.True(t, p.Closed)
	assert.Same(t, r, p.Remove)
	r.DeletionTimestamp = ptr.To(metav1.NewTime(clock()))
	p = MakePlan(c, Seen{Through: "basic-tidb", Restore: r})
	assert.True(t, p.Closed, "it still writes")
	assert.Nil(t, p.Remove)
	r.OwnerReferences = nil
	assert.Equal(t, Plan{Outcome: step.Done()}, MakePlan(c, Seen{Restore: r}), "another's Restore is nothing to it")
}

func TestBR04ARestoreIsRenderedFromTheSpecOfTheCluster(t *testing.T) {
	c := cluster()
	c.Spec.BootstrapFrom.Logical = &v1alpha1.LogicalRun{Threads: ptr.To[int32](8)}
	c.Spec.BootstrapFrom.Physical = &v1alpha1.PhysicalRun{RateLimit: ptr.To[int32](100)}
	spec := renderRestore(c, "basic-tidb").Spec
	assert.Equal(t, int32(8), *spec.Logical.Threads)
	assert.Equal(t, int32(100), *spec.Physical.RateLimit)
	assert.Equal(t, c.Spec.BootstrapFrom.RestoreSource, spec.From)
	assert.Equal(t, c.Spec.BootstrapFrom.Login, spec.Login)
	assert.Equal(t, c.Spec.BootstrapFrom.RunPod, spec.RunPod)
}

// The entry of the group was renamed, and its group is gone: a Restore that has not begun would wait for
// it without an end. One that has begun may have written.
func TestARestoreIsMadeAgainThroughTheGroupThatThereIs(t *testing.T) {
	waits := step.Wait("objects", time.Minute, v1alpha1.ReasonWaitingForTiDBGroup, "TiDBGroup basic-tidb does not exist")
	for name, c := range map[string]struct {
		edit  func(*v1alpha1.TidbCluster, *Seen)
		again bool
	}{
		"it waits":                  {func(*v1alpha1.TidbCluster, *Seen) {}, true},
		"it was not looked at":      {func(_ *v1alpha1.TidbCluster, s *Seen) { s.Restore.Status.State = "" }, true},
		"it runs":                   {func(_ *v1alpha1.TidbCluster, s *Seen) { s.Restore.Status.State = v1alpha1.RunRunning }, false},
		"it has failed":             {func(_ *v1alpha1.TidbCluster, s *Seen) { s.Restore.Status.State = v1alpha1.RunFailed }, false},
		"its group is there":        {func(_ *v1alpha1.TidbCluster, s *Seen) { s.Groupless = false }, false},
		"no other group is there":   {func(_ *v1alpha1.TidbCluster, s *Seen) { s.Through = "" }, false},
		"the cluster is paused":     {func(c *v1alpha1.TidbCluster, _ *Seen) { c.Spec.Paused = true }, false},
		"it is being deleted, once": {func(_ *v1alpha1.TidbCluster, s *Seen) { s.Restore.DeletionTimestamp = &metav1.Time{} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := cluster()
			seen := Seen{Through: "basic-tidb-main", Groupless: true, Restore: restore(cluster, waits)}
			seen.Restore.Status.State = v1alpha1.RunWaiting
			c.edit(cluster, &seen)
			p := MakePlan(cluster, seen)
			assert.True(t, p.Closed)
			assert.Equal(t, c.again, p.Remove != nil)
			if c.again {
				assert.Nil(t, p.Make)
				assert.Contains(t, p.Outcome.Message, "Restore basic-bootstrap is made again, because TiDBGroup basic-tidb, which it names, is gone")
			}
		})
	}
	assert.Equal(t, "basic-tidb-main", MakePlan(cluster(), Seen{Through: "basic-tidb-main"}).Make.Spec.TiDBGroup.Name)
}
