package controller

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/backup/result"
	"github.com/tidb-groups/tidb-groups/shared/testkit/machine"
	"github.com/tidb-groups/tidb-groups/shared/testkit/stage"
)

func TestBR04ABackupWaitsForItsGroupRunsOnceAndReportsItsEnd(t *testing.T) {
	w := begin(t)
	b := w.backup("monday")
	w.Create(b)
	w.state(b, v1alpha1.RunWaiting, "WaitingForTiDBGroup@1: TiDBGroup basic-tidb does not exist")
	w.serve()
	w.state(b, v1alpha1.RunRunning, "JobRunning")
	w.end("monday-backup-1", result.Result{Bytes: 1 << 20, TSO: "42"}, metav1.Now())
	w.state(b, v1alpha1.RunComplete, "Ready=True/Ready@1: complete: 1.0 MiB in s3://backups/shop/monday, as of TSO 42")
	assert.Equal(t, int64(1<<20), b.Status.Bytes)
	assert.Equal(t, "True/UpToDate", stage.Verdict(b, v1alpha1.ConditionUpToDate))
	w.collect("monday-backup-1")
	w.RequireNoWrites(time.Second)
	assert.True(t, w.hasNoJob("monday-backup-2"), "it is done once")
	assert.Empty(t, b.Finalizers, "its files are retained")
}

func TestBR04OnlyARunThatHasNotBegunIsRetried(t *testing.T) {
	w := begin(t)
	w.serve()
	b := w.backup("monday")
	w.Create(b)
	w.state(b, v1alpha1.RunRunning, "")
	w.end("monday-backup-1", result.Result{Reason: v1alpha1.ReasonBucketMissing, Message: "bucket backups: it does not exist"}, metav1.Time{Time: time.Now().Add(-18 * time.Second)})
	w.state(b, v1alpha1.RunWaiting, "Stalled=True/BucketMissing@1: bucket backups: it does not exist; it is tried again after ")
	w.collect("monday-backup-1") // 20 s after its end
	w.state(b, v1alpha1.RunRunning, "Job monday-backup-2 runs")
	w.end("monday-backup-2", result.Result{Reason: v1alpha1.ReasonStorageFull, Message: "no space is left", Begun: true}, metav1.Now())
	w.state(b, v1alpha1.RunFailed, "Stalled=True/StorageFull@1: no space is left; its log: kubectl -n "+w.Namespace+" logs job/monday-backup-2")
	w.RequireNoWrites(time.Second)
	assert.False(t, w.hasNoJob("monday-backup-2"), "its Job keeps the log")
	assert.True(t, w.hasNoJob("monday-backup-3"))
}

func TestBR04FilesAreDeletedWithTheirBackupOnlyIfItsPolicyIsDelete(t *testing.T) {
	w := begin(t)
	w.serve()
	b := w.backup("monday")
	b.Spec.CleanupPolicy = v1alpha1.CleanupDelete
	w.Create(b)
	w.state(b, v1alpha1.RunRunning, "")
	assert.Equal(t, []string{v1alpha1.FinalizerBackup}, b.Finalizers, "before a file is written")
	require.NoError(t, w.Client.Delete(t.Context(), b))
	w.collect("monday-backup-1")
	clean := w.job("monday-clean-1")
	assert.Empty(t, clean.OwnerReferences, "deleting in the foreground does not delete it")
	assert.Equal(t, image, clean.Spec.Template.Spec.Containers[0].Image)
	assert.Contains(t, clean.Spec.Template.Spec.Containers[0].Args, "--uid="+string(b.UID))
	w.end("monday-clean-1", result.Result{Reason: v1alpha1.ReasonStorageUnreachable, Message: "no answer"}, metav1.Now())
	w.state(b, v1alpha1.RunRunning, "Stalled=True/StorageUnreachable@2: the files in s3://backups/shop/monday cannot be deleted: no answer; to keep them, set spec.cleanupPolicy to Retain: kubectl -n "+w.Namespace+" patch backup monday")
	w.Edit(b, func() { b.Spec.CleanupPolicy = v1alpha1.CleanupRetain })
	w.collect("monday-clean-1") // nothing else would stop it
	require.Eventually(t, func() bool {
		return apierrors.IsNotFound(w.Client.Get(t.Context(), client.ObjectKeyFromObject(b), b))
	}, machine.StretchWait(stage.Timeout), stage.Tick)
}

func TestBR04ABackupGoesWhenItsFilesAreGone(t *testing.T) {
	w := begin(t)
	w.serve()
	b := w.backup("monday")
	b.Spec.CleanupPolicy = v1alpha1.CleanupDelete
	w.Create(b)
	w.state(b, v1alpha1.RunRunning, "")
	w.end("monday-backup-1", result.Result{Bytes: 1}, metav1.Now())
	w.state(b, v1alpha1.RunComplete, "")
	w.collect("monday-backup-1")
	require.NoError(t, w.Client.Delete(t.Context(), b, client.PropagationPolicy(metav1.DeletePropagationForeground)))
	w.job("monday-clean-1")
	w.RequireNoWrites(500 * time.Millisecond)
	require.NoError(t, w.Client.Get(t.Context(), client.ObjectKeyFromObject(b), b), "it stays until then")
	w.end("monday-clean-1", result.Result{}, metav1.Now())
	w.collect("monday-clean-1")
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(b), b); !apierrors.IsNotFound(err) {
			assert.NotContains(c, b.Finalizers, v1alpha1.FinalizerBackup) // the garbage collector does the rest
		}
	}, machine.StretchWait(stage.Timeout), stage.Tick)
}

func TestBR04ARestoreReadsACompleteBackup(t *testing.T) {
	w := begin(t)
	w.serve()
	r := &v1alpha1.Restore{ObjectMeta: w.Meta("back"), Spec: v1alpha1.RestoreSpec{
		TiDBGroup: v1alpha1.LocalReference{Name: "basic-tidb"}, From: v1alpha1.RestoreSource{Backup: &v1alpha1.LocalReference{Name: "monday"}},
	}}
	w.Create(r)
	w.WaitForMessage(r, v1alpha1.ReasonWaitingForBackup, "Backup monday does not exist")
	b := w.backup("monday")
	w.Create(b)
	w.WaitForMessage(r, v1alpha1.ReasonWaitingForBackup, "is not complete yet")
	w.state(b, v1alpha1.RunRunning, "")
	w.end("monday-backup-1", result.Result{Bytes: 1, TSO: "7"}, metav1.Now())
	w.state(r, v1alpha1.RunRunning, "JobRunning")
	j := w.job("back-restore-1")
	args := j.Spec.Template.Spec.Containers[0].Args
	assert.Contains(t, args, "--folder=shop/monday")
	assert.Contains(t, args, "--uid="+string(b.UID), "no other backup that has come to lie there is restored")
	w.end("back-restore-1", result.Result{Bytes: 1, TSO: "7"}, metav1.Now())
	w.state(r, v1alpha1.RunComplete, "as of TSO 7")
}

func TestBR02AScheduleMakesBackupsAndKeepsTheNewest(t *testing.T) {
	w := begin(t)
	w.serve()
	s := &v1alpha1.BackupSchedule{ObjectMeta: w.Meta("nightly"), Spec: v1alpha1.BackupScheduleSpec{Schedule: "* * * * *", MaxBackups: ptr.To[int32](1), Template: template(), Paused: true}}
	w.Create(s)
	w.Condition(s, v1alpha1.ConditionPaused, metav1.ConditionTrue, v1alpha1.ReasonPaused)
	// Of the times that pass while it is paused, one has a backup.
	s.Status.LastRun = &metav1.Time{Time: time.Now().Add(-time.Hour)}
	require.NoError(t, w.Client.Status().Update(t.Context(), s))
	old := w.backup("nightly-old")
	old.Labels = map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy, v1alpha1.LabelSchedule: "nightly"}
	old.Annotations = map[string]string{v1alpha1.AnnotationScheduleUID: string(s.UID)}
	strange := w.backup("nightly-strange")
	strange.Labels = old.Labels
	for _, b := range []*v1alpha1.Backup{old, strange} {
		w.Create(b)
		w.state(b, v1alpha1.RunRunning, "")
		w.end(b.Name+"-backup-1", result.Result{Bytes: 1}, metav1.Time{Time: time.Now().Add(-time.Minute)})
		w.state(b, v1alpha1.RunComplete, "")
	}
	w.Edit(s, func() { s.Spec.Paused = false })
	var made v1alpha1.Backup
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		var all v1alpha1.BackupList
		require.NoError(c, w.Client.List(t.Context(), &all, client.InNamespace(w.Namespace)))
		require.Len(c, all.Items, 3)
		for _, b := range all.Items {
			if b.Name != old.Name && b.Name != strange.Name {
				made = b
			}
		}
	}, machine.StretchWait(stage.Timeout), stage.Tick)
	w.state(&made, v1alpha1.RunRunning, "")
	require.NoError(t, w.Client.Get(t.Context(), w.Key(old.Name), old), "the last good one stays until a newer one is complete")
	w.end(made.Name+"-backup-1", result.Result{Bytes: 1}, metav1.Now())
	require.Eventually(t, func() bool {
		return apierrors.IsNotFound(w.Client.Get(t.Context(), w.Key(old.Name), old))
	}, machine.StretchWait(stage.Timeout), stage.Tick)
	require.NoError(t, w.Client.Get(t.Context(), w.Key(strange.Name), strange), "the schedule has not made it")
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		require.NoError(c, w.Client.Get(t.Context(), w.Key(s.Name), s))
		assert.Equal(c, made.Name, s.Status.LastBackup)
		assert.NotNil(c, s.Status.NextRun)
		assert.Equal(c, "True/Ready", stage.Verdict(s, v1alpha1.ConditionReady))
	}, machine.StretchWait(stage.Timeout), stage.Tick)
}

func TestBR02AScheduleWhoseTiDBGroupIsGoneSaysSo(t *testing.T) {
	w := begin(t)
	s := &v1alpha1.BackupSchedule{ObjectMeta: w.Meta("nightly"), Spec: v1alpha1.BackupScheduleSpec{Schedule: "0 2 1 1 *", Template: template(), Paused: true}}
	w.Create(s)
	w.Condition(s, v1alpha1.ConditionPaused, metav1.ConditionTrue, v1alpha1.ReasonPaused)
	waits := w.backup("nightly-1")
	waits.Labels = map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy, v1alpha1.LabelSchedule: "nightly"}
	waits.Annotations = map[string]string{v1alpha1.AnnotationScheduleUID: string(s.UID)}
	w.Create(waits)
	w.Condition(waits, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonWaitingForTiDBGroup)
	left := waits.CreationTimestamp.Add(time.Second)
	require.Eventually(t, func() bool { return time.Now().After(left) }, machine.StretchWait(stage.Timeout), stage.Tick)
	s.Status.LastRun = &metav1.Time{Time: left}
	require.NoError(t, w.Client.Status().Update(t.Context(), s))
	w.Edit(s, func() { s.Spec.Paused = false })
	said := w.Condition(s, v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonRunFailed)
	assert.Contains(t, said.Message, "Backup nightly-1 cannot begin")
}

func TestBR02AnInvalidScheduleIsReportedAndMakesNoBackup(t *testing.T) {
	w := begin(t)
	s := &v1alpha1.BackupSchedule{ObjectMeta: w.Meta("nightly"), Spec: v1alpha1.BackupScheduleSpec{Schedule: "61 * * * *", Template: template()}}
	w.Create(s)
	w.WaitForMessage(s, v1alpha1.ReasonInvalidSpec, `spec.schedule: "61 * * * *": `)
	w.Edit(s, func() { s.Spec.Schedule, s.Spec.TimeZone = "0 2 * * *", "Europe/Nowhere" })
	w.WaitForMessage(s, v1alpha1.ReasonInvalidSpec, `spec.timeZone: "Europe/Nowhere" is not a known time zone`)
	w.Edit(s, func() { s.Spec.TimeZone = "Europe/Berlin" })
	w.Condition(s, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
}

func TestAJobNotMadeForTheBackupIsNamedAndLeftAlone(t *testing.T) {
	w := begin(t)
	w.serve()
	j := &batchv1.Job{ObjectMeta: w.Meta("monday-backup-1")}
	j.Spec.Template.Spec = *w.pod()
	w.Create(j)
	b := w.backup("monday")
	w.Create(b)
	w.WaitForMessage(b, v1alpha1.ReasonNameConflict, "Job monday-backup-1 belongs to another owner: delete it: kubectl -n "+w.Namespace+" delete job monday-backup-1")
	assert.Nil(t, w.job(j.Name).DeletionTimestamp)
}

func TestBR01OnePhysicalRunOfAClusterGoesOnAtATime(t *testing.T) {
	w := begin(t)
	w.serve()
	var all []*v1alpha1.Backup
	for _, name := range []string{"a", "b", "c"} {
		b := w.backup(name)
		b.Spec.Type = v1alpha1.BackupPhysical
		w.Create(b)
		all = append(all, b)
	}
	for range all {
		var running *v1alpha1.Backup
		require.Eventually(t, func() bool {
			running = nil
			for _, b := range all {
				require.NoError(t, w.Client.Get(t.Context(), client.ObjectKeyFromObject(b), b))
				if b.Status.State == v1alpha1.RunRunning {
					running = b
				}
			}
			return running != nil
		}, machine.StretchWait(stage.Timeout), stage.Tick)
		w.runPod(running.Name + "-backup-1")
		w.RequireNoWrites(500 * time.Millisecond)
		for _, b := range all {
			if b != running && !b.Status.HasEnded() {
				assert.True(t, w.hasNoJob(b.Name+"-backup-1"), b.Name)
				w.WaitForMessage(b, v1alpha1.ReasonWaitingForRun, "Job "+running.Name+"-backup-1 belongs to another physical run")
			}
		}
		w.end(running.Name+"-backup-1", result.Result{Bytes: 1, TSO: "1"}, metav1.Now())
		w.state(running, v1alpha1.RunComplete, "")
		w.collect(running.Name + "-backup-1")
	}
}

// logResult is what a Job of a LogBackup leaves.
func logResult(task, checkpoint string) result.Result {
	return result.Result{Log: &result.Log{Task: task, Start: "42", Checkpoint: checkpoint}}
}

func TestBR01ALogBackupFollowsItsSpecAndGoesWhenItsTaskIsStopped(t *testing.T) {
	w := begin(t)
	w.serve()
	l := &v1alpha1.LogBackup{ObjectMeta: w.Meta("pitr"), Spec: v1alpha1.LogBackupSpec{TiDBGroup: v1alpha1.LocalReference{Name: "basic-tidb"}, Storage: template().Storage}}
	w.Create(l)
	arg := func(name, want string) {
		t.Helper()
		assert.Contains(t, w.job(name).Spec.Template.Spec.Containers[0].Args, want)
	}
	arg("pitr-log-1", "--state=Running")
	w.end("pitr-log-1", logResult(result.TaskRunning, "462000000073728000"), metav1.Now())
	w.state(l, v1alpha1.RunRunning, "the log has all changes from 1970-01-01T00:00:00.000Z to 2025-11-06T00:48:57.000Z, and goes on")
	w.collect("pitr-log-1")
	w.RequireNoWrites(time.Second)
	assert.True(t, w.hasNoJob("pitr-log-2"), "it is looked at after checkEvery")
	w.Edit(l, func() { l.Spec.State = v1alpha1.LogPaused })
	arg("pitr-log-2", "--state=Paused")
	w.end("pitr-log-2", result.Result{Reason: v1alpha1.ReasonLogTaskFailed, Message: "no room"}, metav1.Now())
	w.state(l, v1alpha1.RunRunning, "Stalled=True/LogTaskFailed@2: no room; it is tried again after ")
	require.NoError(t, w.Client.Delete(t.Context(), l))
	w.collect("pitr-log-2")
	arg("pitr-log-3", "--state=Stopped")
	w.runPod("pitr-log-3") // a Job that has none for five seconds says so
	w.RequireNoWrites(500 * time.Millisecond)
	require.NoError(t, w.Client.Get(t.Context(), client.ObjectKeyFromObject(l), l), "it stays until then")
	w.end("pitr-log-3", result.Result{Log: &result.Log{Task: result.TaskStopped}}, metav1.Now())
	w.collect("pitr-log-3")
	require.Eventually(t, func() bool {
		return apierrors.IsNotFound(w.Client.Get(t.Context(), client.ObjectKeyFromObject(l), l))
	}, machine.StretchWait(stage.Timeout), stage.Tick)
}

// The TiDBGroup was renamed: the task is that of the cluster, and goes on beside the other group.
func TestBR01ALogBackupGoesOnThroughAnotherTiDBGroupOfItsCluster(t *testing.T) {
	w := begin(t)
	w.serve()
	l := &v1alpha1.LogBackup{ObjectMeta: w.Meta("pitr"), Spec: v1alpha1.LogBackupSpec{TiDBGroup: v1alpha1.LocalReference{Name: "basic-tidb"}, Storage: template().Storage}}
	w.Create(l)
	w.end("pitr-log-1", logResult(result.TaskRunning, "462000000073728000"), metav1.Now())
	w.state(l, v1alpha1.RunRunning, "and goes on")
	w.collect("pitr-log-1")
	require.NoError(t, w.Client.Delete(t.Context(), w.group))
	w.Edit(l, func() { l.Spec.State = v1alpha1.LogPaused })
	w.Condition(l, v1alpha1.ConditionUpToDate, metav1.ConditionFalse, v1alpha1.ReasonWaitingForTiDBGroup)

	spec := w.group.Spec
	w.group = &v1alpha1.TiDBGroup{ObjectMeta: w.Meta("other-tidb"), Spec: spec}
	w.serve()
	assert.Contains(t, w.job("pitr-log-2").Spec.Template.Spec.Containers[0].Args, "--state=Paused")
}

// BR goes on where the log ended when a task is started again, and the log has none of what BR has restored.
func TestBR01ALogThatWasStoppedForARestoreDoesNotGoOn(t *testing.T) {
	w := begin(t)
	w.serve()
	l := &v1alpha1.LogBackup{ObjectMeta: w.Meta("pitr"), Spec: v1alpha1.LogBackupSpec{TiDBGroup: v1alpha1.LocalReference{Name: "basic-tidb"}, Storage: template().Storage}}
	w.Create(l)
	w.end("pitr-log-1", logResult(result.TaskRunning, "462000000073728000"), metav1.NewTime(time.Now().Add(-time.Minute)))
	w.state(l, v1alpha1.RunRunning, "and goes on")
	w.collect("pitr-log-1")
	w.Edit(l, func() { l.Spec.State = v1alpha1.LogStopped })
	w.end("pitr-log-2", result.Result{Log: &result.Log{Task: result.TaskStopped}}, metav1.Now())
	w.state(l, v1alpha1.RunStopped, "the task is stopped")
	w.collect("pitr-log-2")

	storage := template().Storage
	r := &v1alpha1.Restore{ObjectMeta: w.Meta("back"), Spec: v1alpha1.RestoreSpec{TiDBGroup: v1alpha1.LocalReference{Name: "basic-tidb"}, Type: v1alpha1.BackupPhysical, From: v1alpha1.RestoreSource{Storage: &storage, Folder: "monday"}}}
	w.Create(r)
	w.end("back-restore-1", result.Result{Bytes: 1, TSO: "1"}, metav1.Now())
	w.state(r, v1alpha1.RunComplete, "")
	w.collect("back-restore-1")
	require.Eventually(t, func() bool {
		require.NoError(t, w.Client.Get(t.Context(), client.ObjectKeyFromObject(l), l))
		return l.Status.RestoredBy == "back"
	}, machine.StretchWait(stage.Timeout), stage.Tick)
	require.NoError(t, w.Client.Delete(t.Context(), r))
	w.Edit(l, func() { l.Spec.State = v1alpha1.LogRunning })
	w.WaitForMessage(l, v1alpha1.ReasonLogGap, "Restore back has written the cluster since the log ended")
	w.RequireNoWrites(500 * time.Millisecond)
	assert.True(t, w.hasNoJob("pitr-log-3"))
}

func TestBR01AChosenBackupIsKeptWhileItIsRestored(t *testing.T) {
	r := &v1alpha1.Restore{}
	r.Spec.From.LogBackup = &v1alpha1.LocalReference{Name: "pitr"}
	assert.Empty(t, sourceOf(r))
	r.Status.Backup = "monday"
	assert.Equal(t, "monday", sourceOf(r), "retention asks for it")
}
