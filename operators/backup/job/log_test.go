package job

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/backup/jobtemplate"
	"github.com/tidb-groups/tidb-groups/operators/backup/result"
	"github.com/tidb-groups/tidb-groups/operators/backup/runner"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/testkit/golden"
)

func pitr() *v1alpha1.LogBackup {
	l := &v1alpha1.LogBackup{ObjectMeta: metav1.ObjectMeta{Name: "the-log", Namespace: "db", UID: "0123-456789", Generation: 1, Finalizers: []string{v1alpha1.FinalizerBackup}}}
	l.Spec.TiDBGroup.Name, l.Spec.State = "basic-tidb", v1alpha1.LogRunning
	l.Spec.Storage.S3 = &v1alpha1.S3Storage{Bucket: "backups", Prefix: "a/b", Endpoint: "http://s3:7070", Secret: &v1alpha1.LocalReference{Name: "keys"}}
	l.Status.PDGroup = "basic-pd"
	return l
}

// tso is the time stamp of some minutes past three.
func tso(minutes int) uint64 {
	return result.TSOFromTime(time.Date(2026, 1, 2, 3, minutes, 0, 0, time.UTC))
}

func text(at uint64) string { return strconv.FormatUint(at, 10) }

// running is a LogBackup that was just looked at.
func running() *v1alpha1.LogBackup {
	l := pitr()
	l.Status.State, l.Status.LogStart, l.Status.TaskStart, l.Status.Checkpoint = v1alpha1.RunRunning, text(tso(0)), text(tso(0)), text(tso(50))
	l.Status.StartTime, l.Status.CompletionTime = &metav1.Time{Time: clock()}, &metav1.Time{Time: clock()}
	l.Status.Attempts, l.Status.Location = 7, "s3://backups/a/b/the-log"
	return l
}

func TestBR01TheJobOfALogBackupIsRenderedFromTheSpec(t *testing.T) {
	l := running()
	l.Status.State, l.Spec.TruncateBefore = v1alpha1.RunPaused, &metav1.Time{Time: result.TimeOf(tso(5))}
	p := MakePlan(l, Seen{Group: group(), Image: image, Now: clock()})
	require.NotNil(t, p.Start)
	golden.CompareJSON(t, "testdata/log-s3.json", p.Start)
	c := p.Start.Spec.Template.Spec.Containers[0]
	command, err := runner.Parse(append([]string{c.Command[1]}, c.Args...))
	require.NoError(t, err, "the program understands it")
	assert.Equal(t, runner.Log{Task: "the_log_01234567", State: "Running", Begun: text(tso(0)), Truncate: text(tso(5))}, command.Log)
	assert.NotContains(t, p.Start.Labels, v1alpha1.LabelPhysicalOf, "backups run beside it")
}

func TestBR01WhenAJobChecksALogBackup(t *testing.T) {
	for name, of := range map[string]struct {
		change func(*v1alpha1.LogBackup, *Seen)
		start  bool
		wake   time.Duration
		words  string
	}{
		"just looked at":    {func(*v1alpha1.LogBackup, *Seen) {}, false, 5 * time.Minute, ""},
		"after the default": {func(_ *v1alpha1.LogBackup, s *Seen) { s.Now = clock().Add(5 * time.Minute) }, true, 0, ""},
		"sooner, as asked": {func(l *v1alpha1.LogBackup, s *Seen) {
			l.Spec.CheckEvery, s.Now = &metav1.Duration{Duration: time.Minute}, clock().Add(time.Minute)
		}, true, 0, ""},
		"another state": {func(l *v1alpha1.LogBackup, _ *Seen) { l.Spec.State = v1alpha1.LogPaused }, true, 0, "is being made"},
		"a state that has been reached": {func(l *v1alpha1.LogBackup, s *Seen) {
			l.Spec.State, l.Status.State, s.Now = v1alpha1.LogStopped, v1alpha1.RunStopped, clock().Add(time.Hour)
		}, false, 0, ""},
		"its group is not Ready": {func(l *v1alpha1.LogBackup, s *Seen) {
			l.Spec.State, s.Group.Status.Conditions[0].Status = v1alpha1.LogPaused, metav1.ConditionFalse
		}, false, 0, "is not Ready yet"},
		"its group lets no client in": {func(l *v1alpha1.LogBackup, s *Seen) {
			l.Spec.State, s.Group.Spec.Service = v1alpha1.LogPaused, &v1alpha1.ServiceSpec{Closed: true}
		}, false, 0, "lets no client in"},
		"to be stopped, for which a Restore waits that fills its group": {func(l *v1alpha1.LogBackup, s *Seen) {
			l.Spec.State, s.Group.Spec.Service = v1alpha1.LogStopped, &v1alpha1.ServiceSpec{Closed: true}
		}, true, 0, "is being made"},
		"a failure": {func(l *v1alpha1.LogBackup, s *Seen) { l.Status.Failures = 2 }, false, 40 * time.Second, ""},
		"a failure some time ago": {func(l *v1alpha1.LogBackup, s *Seen) {
			l.Status.Failures, s.Now = 2, clock().Add(40*time.Second)
		}, true, 0, ""},
		"its first": {func(l *v1alpha1.LogBackup, _ *Seen) { l.Status = v1alpha1.LogBackupStatus{PDGroup: "basic-pd"} }, true, 0, "is being made"},
		"before it stands in status that there may be a task": {func(l *v1alpha1.LogBackup, _ *Seen) { l.Status = v1alpha1.LogBackupStatus{} }, false, 0, "changing the task to state Running"},
		"before it is held": {func(l *v1alpha1.LogBackup, _ *Seen) { l.Finalizers = nil }, false, 0, "finalizer"},
	} {
		t.Run(name, func(t *testing.T) {
			l, seen := running(), Seen{Group: group(), Image: image, Now: clock()}
			of.change(l, &seen)
			p := MakePlan(l, seen)
			assert.Equal(t, of.start, p.Start != nil)
			assert.Equal(t, of.wake, p.Wake)
			assert.Contains(t, p.Outcome.Message, of.words)
			if of.words == "" && l.Status.Failures == 0 {
				assert.Equal(t, step.Done(), p.Outcome, "a look makes no difference to conditions")
			}
		})
	}
}

func TestBR02ALogIsTruncatedWithTheOldestFullBackup(t *testing.T) {
	backup := func(minutes int, change func(*v1alpha1.Backup)) *v1alpha1.Backup {
		b := toRetained()
		b.Spec.Type, b.Spec.Filters, b.Spec.Storage.S3.Prefix = v1alpha1.BackupPhysical, nil, "elsewhere"
		b.Status.State, b.Status.TSO = v1alpha1.RunComplete, text(tso(minutes))
		if change != nil {
			change(b)
		}
		return b
	}
	with := func(l *v1alpha1.LogBackup) { l.Spec.TruncateWith = &v1alpha1.LocalReference{Name: "nightly"} }
	for name, of := range map[string]struct {
		backups []*v1alpha1.Backup
		change  func(*v1alpha1.LogBackup, *Seen)
		want    uint64
	}{
		"the oldest":             {[]*v1alpha1.Backup{backup(20, nil), backup(10, nil), backup(30, nil)}, nil, tso(10)},
		"one that is going":      {[]*v1alpha1.Backup{backup(20, nil), backup(10, func(b *v1alpha1.Backup) { b.DeletionTimestamp = &metav1.Time{Time: clock()} })}, nil, tso(10)},
		"none":                   {nil, nil, 0},
		"one that failed":        {[]*v1alpha1.Backup{backup(10, func(b *v1alpha1.Backup) { b.Status.State = v1alpha1.RunFailed }), backup(20, nil)}, nil, tso(20)},
		"one that is logical":    {[]*v1alpha1.Backup{backup(10, func(b *v1alpha1.Backup) { b.Spec.Type = v1alpha1.BackupLogical })}, nil, 0},
		"one of some tables":     {[]*v1alpha1.Backup{backup(10, func(b *v1alpha1.Backup) { b.Spec.Filters = []string{"a.*"} })}, nil, 0},
		"one of another cluster": {[]*v1alpha1.Backup{backup(10, func(b *v1alpha1.Backup) { b.Spec.TiDBGroup.Name = "other" })}, nil, 0},
		"one through another group": {[]*v1alpha1.Backup{backup(10, func(b *v1alpha1.Backup) { b.Spec.TiDBGroup.Name = "beside" })}, func(_ *v1alpha1.LogBackup, s *Seen) {
			s.Groups = []string{"basic-tidb", "beside"}
		}, tso(10)},
		"one without time stamp": {[]*v1alpha1.Backup{backup(10, nil), backup(20, func(b *v1alpha1.Backup) { b.Status.TSO = "" })}, nil, 0},
		"it was already":         {[]*v1alpha1.Backup{backup(10, nil)}, func(l *v1alpha1.LogBackup, _ *Seen) { l.Status.TruncatedTo = text(tso(10)) }, 0},
		"before the log begins":  {[]*v1alpha1.Backup{backup(10, nil)}, func(l *v1alpha1.LogBackup, _ *Seen) { l.Status.LogStart = text(tso(11)) }, 0},
		"after its end":          {[]*v1alpha1.Backup{backup(51, nil)}, nil, 0},
		"while it is read":       {[]*v1alpha1.Backup{backup(10, nil)}, func(_ *v1alpha1.LogBackup, s *Seen) { s.Read = true }, 0},
		"by a time": {nil, func(l *v1alpha1.LogBackup, _ *Seen) {
			l.Spec.TruncateWith, l.Spec.TruncateBefore = nil, &metav1.Time{Time: result.TimeOf(tso(12))}
		}, tso(12)},
		"by a time after its end": {nil, func(l *v1alpha1.LogBackup, _ *Seen) {
			l.Spec.TruncateWith, l.Spec.TruncateBefore = nil, &metav1.Time{Time: result.TimeOf(tso(51))}
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			l, seen := running(), Seen{Group: group(), Image: image, Now: clock(), Backups: of.backups}
			with(l)
			if of.change != nil {
				of.change(l, &seen)
			}
			p := MakePlan(l, seen)
			if strings.HasPrefix(name, "by a time after") {
				assert.Equal(t, v1alpha1.ReasonInvalidSpec, p.Outcome.Reason)
				assert.Contains(t, p.Outcome.Message, "spec.truncateBefore 2026-01-02T03:51:00.000Z is after the end of the log, 2026-01-02T03:50:00.000Z, and nothing is deleted")
			}
			if of.want == 0 {
				assert.Nil(t, p.Start)
				return
			}
			require.NotNil(t, p.Start)
			assert.Contains(t, p.Start.Spec.Template.Spec.Containers[0].Args, "--truncate="+text(of.want))
		})
	}
}

func TestBR02AScheduleThatALogIsNotTruncatedWithIsNamed(t *testing.T) {
	for name, of := range map[string]struct {
		change func(*v1alpha1.BackupTemplate)
		says   string
	}{
		"good":               {nil, ""},
		"logical":            {func(b *v1alpha1.BackupTemplate) { b.Type = v1alpha1.BackupLogical }, "makes logical Backups"},
		"of some tables":     {func(b *v1alpha1.BackupTemplate) { b.Filters = []string{"a.*"} }, "copies a part of the cluster"},
		"of another bucket":  {func(b *v1alpha1.BackupTemplate) { b.Storage.S3.Bucket = "other" }, "has another bucket or Secret"},
		"of another cluster": {func(b *v1alpha1.BackupTemplate) { b.TiDBGroup.Name = "other" }, "is of another cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			l := running()
			l.Spec.TruncateWith = &v1alpha1.LocalReference{Name: "nightly"}
			s := &v1alpha1.BackupSchedule{Spec: v1alpha1.BackupScheduleSpec{Template: v1alpha1.BackupTemplate{TiDBGroup: l.Spec.TiDBGroup, Type: v1alpha1.BackupPhysical, Storage: *l.Spec.Storage.DeepCopy()}}}
			if of.change != nil {
				of.change(&s.Spec.Template)
			}
			seen := Seen{Group: group(), Image: image, Now: clock(), Schedule: s}
			o := MakePlan(l, seen).Outcome
			if of.says == "" {
				assert.Equal(t, step.Done(), o)
				return
			}
			assert.Equal(t, v1alpha1.ReasonInvalidSpec, o.Reason)
			assert.Contains(t, o.Message, "spec.truncateWith: BackupSchedule nightly "+of.says)
		})
	}
	t.Run("missing", func(t *testing.T) {
		l := running()
		l.Spec.TruncateWith = &v1alpha1.LocalReference{Name: "nightly"}
		seen := Seen{Group: group(), Image: image, Now: clock()}
		assert.Equal(t, v1alpha1.ReasonMissingReference, MakePlan(l, seen).Outcome.Reason)
		seen.Backups = []*v1alpha1.Backup{toRetained()}
		assert.Equal(t, step.Done(), MakePlan(l, seen).Outcome, "those that it has made count")
	})
}

func TestBR01ALogBackupGoesWhenItsTaskIsStopped(t *testing.T) {
	deleted := func(change func(*v1alpha1.LogBackup, *Seen)) Plan {
		l, seen := running(), Seen{Group: group(), Image: image, Now: clock()}
		l.DeletionTimestamp, l.Generation = &metav1.Time{Time: clock()}, 2
		if change != nil {
			change(l, &seen)
		}
		return MakePlan(l, seen)
	}
	p := deleted(nil)
	require.NotNil(t, p.Start)
	assert.Contains(t, p.Start.Spec.Template.Spec.Containers[0].Args, "--state=Stopped")
	p = deleted(func(l *v1alpha1.LogBackup, s *Seen) { s.Group.Status.Conditions[0].Status = metav1.ConditionFalse })
	assert.NotNil(t, p.Start, "BR asks PD alone")
	assert.True(t, deleted(func(l *v1alpha1.LogBackup, _ *Seen) { l.Status.State = v1alpha1.RunStopped }).Release)
	assert.False(t, deleted(func(l *v1alpha1.LogBackup, _ *Seen) { l.Status.State, l.Status.Failures = v1alpha1.RunStopped, 1 }).Release)
	assert.True(t, deleted(func(l *v1alpha1.LogBackup, _ *Seen) { l.Status = v1alpha1.LogBackupStatus{} }).Release, "no task was ever started")
	assert.True(t, deleted(func(_ *v1alpha1.LogBackup, s *Seen) { s.Group = nil }).Release, "nor is there a cluster")
	p = deleted(func(_ *v1alpha1.LogBackup, s *Seen) { s.Group, s.Cluster = nil, true })
	assert.False(t, p.Release)
	assert.Contains(t, p.Outcome.Message, "TiDBGroup basic-tidb is gone, and PDGroup basic-pd may know task the_log_01234567")
	assert.Contains(t, p.Outcome.Message, "kubectl -n db patch logbackup the-log --type=merge -p")
	p = deleted(func(l *v1alpha1.LogBackup, _ *Seen) {
		l.Status.State, l.Spec.CleanupPolicy = v1alpha1.RunStopped, v1alpha1.CleanupDelete
	})
	require.NotNil(t, p.Start)
	assert.Equal(t, "the-log-logclean-1", p.Start.Name)
	assert.Contains(t, p.Start.Spec.Template.Spec.Containers[0].Args, "--folder=a/b/the-log")
}

// A log that was stopped begins where it ended, and nothing of its second task may stay either.
func TestBR01TheStartOfTheCurrentTaskIsKnown(t *testing.T) {
	l := running()
	l.Status.State = v1alpha1.RunStopped
	p := &planner{run: l, plan: Plan{Status: l.Status.RunStatus, Log: l.Status}}
	p.noteTask(&result.Log{Task: result.TaskRunning, Start: text(tso(50)), Checkpoint: text(tso(51))}, metav1.Time{Time: clock()})
	assert.Equal(t, text(tso(0)), p.plan.Log.LogStart, "the log has it since")
	assert.Equal(t, text(tso(50)), p.plan.Log.TaskStart)
	l.Status, l.DeletionTimestamp = p.plan.Log, &metav1.Time{Time: clock()}
	l.Status.State = v1alpha1.RunRunning
	made := MakePlan(l, Seen{Group: group(), Image: image, Now: clock()})
	require.NotNil(t, made.Start)
	assert.Contains(t, made.Start.Spec.Template.Spec.Containers[0].Args, "--begun="+text(tso(50)))
}

func TestBR01NoLogBeginsWhileARestoreRuns(t *testing.T) {
	restores := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "back-restore-1", Namespace: "db", Labels: map[string]string{v1alpha1.LabelComponent: jobtemplate.ComponentRestore}}}
	backs := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "monday-backup-1", Namespace: "db", Labels: map[string]string{v1alpha1.LabelComponent: jobtemplate.ComponentBackup}}}
	l := pitr()
	p := MakePlan(l, Seen{Group: group(), Image: image, Now: clock(), Others: []*batchv1.Job{backs, restores}})
	assert.Nil(t, p.Start)
	assert.Equal(t, v1alpha1.ReasonWaitingForRun, p.Outcome.Reason)
	assert.Contains(t, p.Outcome.Message, "Job back-restore-1 restores into the cluster, and BR begins no log meanwhile: kubectl -n db describe job back-restore-1")
	assert.NotNil(t, MakePlan(l, Seen{Group: group(), Image: image, Now: clock(), Others: []*batchv1.Job{backs}}).Start)
	l = running()
	l.Spec.State = v1alpha1.LogPaused
	assert.NotNil(t, MakePlan(l, Seen{Group: group(), Image: image, Now: clock(), Others: []*batchv1.Job{restores}}).Start, "one that was begun")
}

// playLog plays Kubernetes and a cluster around one LogBackup.
type playLog struct {
	*rapid.T
	l    *v1alpha1.LogBackup
	jobs map[string]*batchv1.Job
	pods map[string]*corev1.Pod
	now  time.Time
	// task is what the cluster has.
	task string
	gone bool
}

func (p *playLog) turn() {
	seen := Seen{Group: group(), Image: image, Now: p.now, Cluster: true}
	for _, j := range p.jobs {
		seen.Jobs = append(seen.Jobs, j)
	}
	for _, pod := range p.pods {
		seen.Pods = append(seen.Pods, pod)
	}
	plan := MakePlan(p.l, seen)
	die := rapid.IntRange(0, 4).Draw(p.T, "dies after")
	for _, j := range plan.Stop {
		if die--; die == 0 {
			return
		}
		delete(p.jobs, j.Name)
		delete(p.pods, j.Name)
	}
	switch {
	case plan.Hold:
		p.l.Finalizers = []string{v1alpha1.FinalizerBackup}
	case plan.Release:
		require.NotEqual(p.T, "task", p.task, "the task is left in the cluster")
		require.Empty(p.T, p.jobs, "a Job may start it")
		p.gone = true
	case plan.Start != nil:
		require.Empty(p.T, p.jobs, "one at a time")
		require.NotEmpty(p.T, p.l.Finalizers)
		plan.Start.UID, plan.Start.CreationTimestamp = types.UID(fmt.Sprint(plan.Start.Name, p.now)), metav1.Time{Time: p.now}
		p.jobs[plan.Start.Name] = plan.Start
	}
	if die != 1 {
		after := plan.Log
		after.RunStatus = plan.Status
		if plan.Outcome.Kind == step.KindStall {
			after.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionStalled, Reason: plan.Outcome.Reason, Message: plan.Outcome.Message}}
		}
		p.l.Status = after
	}
}

// end has a Job do what it says, or fail on the way.
func (p *playLog) end(j *batchv1.Job, fails, killed bool) {
	args := j.Spec.Template.Spec.Containers[0].Args
	stop := slices.Contains(args, "--state=Stopped")
	out := result.Result{Log: &result.Log{Task: result.TaskRunning, Start: text(tso(0)), Checkpoint: text(result.TSOFromTime(p.now))}}
	p.task = "task"
	if stop {
		p.task, out.Log = "", &result.Log{Task: result.TaskStopped}
	}
	kind := batchv1.JobComplete
	if fails || killed {
		kind, out = batchv1.JobFailed, result.Result{Reason: v1alpha1.ReasonRunFailed, Message: "no"}
	}
	j.Status.Conditions = []batchv1.JobCondition{{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Time{Time: p.now}}}
	if killed {
		return
	}
	message, err := out.Encode()
	require.NoError(p.T, err)
	p.pods[j.Name] = pod(j, func(s *corev1.PodStatus) {
		s.ContainerStatuses = []corev1.ContainerStatus{{Name: jobtemplate.Container, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: string(message)}}}}
	})
}

// Whatever happens, a LogBackup that is deleted goes only when the cluster has no task of it.
func TestBR01NoTaskOutlivesItsLogBackup(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		p := &playLog{T: r, l: pitr(), jobs: map[string]*batchv1.Job{}, pods: map[string]*corev1.Pod{}, now: clock()}
		p.l.Finalizers, p.l.Status = nil, v1alpha1.LogBackupStatus{}
		deleteAt := rapid.IntRange(1, 30).Draw(r, "deleted at")
		for n := 0; n < 200 && !p.gone; n++ {
			if n == deleteAt {
				if len(p.l.Finalizers) == 0 {
					return
				}
				p.l.DeletionTimestamp, p.l.Generation = &metav1.Time{Time: p.now}, p.l.Generation+1
			}
			for _, j := range p.jobs {
				if len(j.Status.Conditions) == 0 && rapid.Bool().Draw(r, "it ends") {
					odd := n < 60
					p.end(j, odd && rapid.IntRange(0, 2).Draw(r, "fails") == 0, odd && rapid.IntRange(0, 4).Draw(r, "is killed") == 0)
				}
			}
			p.now = p.now.Add(time.Duration(rapid.IntRange(1, 400).Draw(r, "seconds")) * time.Second)
			p.turn()
		}
		require.True(r, p.gone, "it goes in the end: %+v", p.l.Status)
	})
}

// A look at a log that goes well costs one write of the status, beside its Job.
func TestBR01ACheckOfALogBackupWritesStatusOnce(t *testing.T) {
	l := running()
	seen := Seen{Group: group(), Image: image, Now: clock().Add(5 * time.Minute)}
	writes := 0
	apply := func(p Plan) {
		after := p.Log
		after.RunStatus = p.Status
		if !equality.Semantic.DeepEqual(after, l.Status) {
			writes++
		}
		l.Status = after
	}
	p := MakePlan(l, seen)
	require.NotNil(t, p.Start)
	apply(p)
	j := p.Start
	j.CreationTimestamp, seen.Jobs = metav1.Time{Time: seen.Now}, []*batchv1.Job{j}
	apply(MakePlan(l, seen))
	j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Time{Time: seen.Now}}}
	message, err := result.Result{Log: &result.Log{Task: result.TaskRunning, Start: text(tso(0)), Checkpoint: text(tso(8))}}.Encode()
	require.NoError(t, err)
	seen.Pods = []*corev1.Pod{pod(j, func(s *corev1.PodStatus) {
		s.ContainerStatuses = []corev1.ContainerStatus{{Name: jobtemplate.Container, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: string(message)}}}}
	})}
	apply(MakePlan(l, seen))
	p = MakePlan(l, seen)
	assert.Equal(t, []*batchv1.Job{j}, p.Stop)
	apply(p)
	assert.Equal(t, 1, writes)
	assert.Equal(t, "1m5s", l.Status.CheckpointLag)
	assert.Equal(t, "2026-01-02 03:08:00 +0000 UTC", l.Status.CheckpointTime.UTC().String())
	assert.Equal(t, int32(8), l.Status.Attempts)
}

// A Job that starts the task again may not have reported yet when the LogBackup is deleted.
func TestBR01ATaskThatIsBeingStartedAgainIsStoppedBeforeItsLogBackupGoes(t *testing.T) {
	l := running()
	l.Status.State = v1alpha1.RunStopped
	seen := Seen{Group: group(), Image: image, Now: clock().Add(time.Second)}
	p := MakePlan(l, seen)
	require.Nil(t, p.Start)
	assert.Equal(t, v1alpha1.RunWaiting, p.Status.State, "status says first that a task may be there")
	assert.Positive(t, p.Wake)
	l.Status.RunStatus = p.Status
	p = MakePlan(l, seen)
	require.NotNil(t, p.Start)

	now := metav1.NewTime(clock())
	l.DeletionTimestamp, l.Generation, seen.Jobs = &now, 2, []*batchv1.Job{p.Start}
	assert.Len(t, MakePlan(l, seen).Stop, 1)
	seen.Jobs = nil
	p = MakePlan(l, seen)
	assert.False(t, p.Release)
	require.NotNil(t, p.Start)
	assert.Contains(t, p.Start.Spec.Template.Spec.Containers[0].Args, "--state=Stopped")
}

func TestBR02NoLogIsTruncatedWhoseTaskHasStopped(t *testing.T) {
	l := running()
	l.Spec.State, l.Status.State = v1alpha1.LogStopped, v1alpha1.RunStopped
	l.Spec.TruncateBefore = &metav1.Time{Time: result.TimeOf(tso(5))}
	assert.Nil(t, MakePlan(l, Seen{Group: group(), Image: image, Now: clock().Add(time.Second)}).Start)
}

// A time that time stamps of TiDB do not reach is after the end of each log, and no time before it.
func TestBR02ALogIsNotTruncatedForATimeThatNoTimeStampHas(t *testing.T) {
	l := running()
	// 30 minutes past three, but for bits that do not fit.
	l.Spec.TruncateBefore = &metav1.Time{Time: time.UnixMilli(result.TimeOf(tso(30)).UnixMilli() + 1<<46)}
	p := MakePlan(l, Seen{Group: group(), Image: image, Now: clock()})
	assert.Nil(t, p.Start)
	assert.Equal(t, v1alpha1.ReasonInvalidSpec, p.Outcome.Reason)
	assert.Greater(t, result.TSOFromTime(time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)), tso(0))
}

// TiDB pauses the task of a log that is 48 hours behind, and gives no error: each look would resume it, and
// call the log complete and going on.
func TestBR01ATaskThatOthersPausedIsReported(t *testing.T) {
	for name, c := range map[string]struct {
		before   v1alpha1.RunState
		was      string
		failures int32
	}{
		"it ran, and was paused":         {v1alpha1.RunRunning, result.TaskPaused, 1},
		"it was paused by the LogBackup": {v1alpha1.RunPaused, result.TaskPaused, 0},
		"it ran on":                      {v1alpha1.RunRunning, "", 0},
		"it was not looked at since":     {v1alpha1.RunWaiting, result.TaskPaused, 0},
	} {
		t.Run(name, func(t *testing.T) {
			l := running()
			l.Status.State = c.before
			j := jobtemplate.RenderLog(l, jobtemplate.Task{State: v1alpha1.LogRunning}, group(), image, 8)
			j.CreationTimestamp = metav1.Time{Time: clock().Add(time.Second)}
			j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Time{Time: clock().Add(2 * time.Second)}}}
			message, err := result.Result{Log: &result.Log{Task: result.TaskRunning, Was: c.was, Start: text(tso(0)), Checkpoint: text(tso(50))}}.Encode()
			require.NoError(t, err)
			seen := Seen{Group: group(), Image: image, Now: clock().Add(3 * time.Second), Jobs: []*batchv1.Job{j}, Pods: []*corev1.Pod{pod(j, func(s *corev1.PodStatus) {
				s.ContainerStatuses = []corev1.ContainerStatus{{Name: jobtemplate.Container, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: string(message)}}}}
			})}}
			p := MakePlan(l, seen)
			assert.Equal(t, c.failures, p.Log.Failures)
			assert.Equal(t, v1alpha1.RunRunning, p.Status.State)
			assert.Equal(t, c.failures > 0, p.Outcome.Reason == v1alpha1.ReasonLogTaskFailed)
			if c.failures > 0 {
				assert.Contains(t, p.Outcome.Message, "the task had been paused, and was resumed: TiDB pauses one whose log is 48 hours behind")
			}
		})
	}
}

// A database is dropped and restored to a moment, and its log is started again: BR goes on where the log ended,
// and has none of what it restored. A later Restore to a moment would lack it.
func TestBR01ALogDoesNotGoOnAfterARestoreThatBRHasWritten(t *testing.T) {
	restored := func(state v1alpha1.RunState, after time.Duration) *v1alpha1.Restore {
		r := &v1alpha1.Restore{ObjectMeta: metav1.ObjectMeta{Name: "back", Namespace: "db"}}
		r.Status.State, r.Status.StartTime = state, &metav1.Time{Time: clock().Add(after)}
		return r
	}
	stopped := func() *v1alpha1.LogBackup {
		l := running()
		l.Spec.State, l.Status.State = v1alpha1.LogStopped, v1alpha1.RunStopped
		return l
	}
	waits := &v1alpha1.Restore{ObjectMeta: metav1.ObjectMeta{Name: "back"}}
	for name, of := range map[string]struct {
		restore *v1alpha1.Restore
		noted   string
		want    string
	}{
		"none":                             {nil, "", ""},
		"one that is complete":             {restored(v1alpha1.RunComplete, time.Minute), "", "back"},
		"one that failed":                  {restored(v1alpha1.RunFailed, time.Minute), "", "back"},
		"one that runs":                    {restored(v1alpha1.RunRunning, time.Second), "", "back"},
		"one from before the log":          {restored(v1alpha1.RunComplete, -time.Minute), "", ""},
		"one that waits for its first run": {waits, "", ""},
		"one that found nothing empty":     {restored(v1alpha1.RunWaiting, time.Minute), "back", ""},
		"one that is gone":                 {nil, "back", "back"},
	} {
		t.Run(name, func(t *testing.T) {
			l, seen := stopped(), Seen{Group: group(), Image: image, Now: clock().Add(time.Hour)}
			l.Status.RestoredBy = of.noted
			if of.restore != nil {
				seen.Restores = []*v1alpha1.Restore{of.restore}
			}
			p := MakePlan(l, seen)
			assert.Equal(t, of.want, p.Log.RestoredBy)
			assert.Equal(t, step.Done(), p.Outcome, "it is stopped, as asked")
			assert.Nil(t, p.Start)

			l.Spec.State, l.Status.RestoredBy = v1alpha1.LogRunning, p.Log.RestoredBy
			p = MakePlan(l, seen)
			if of.want == "" {
				assert.Equal(t, v1alpha1.RunWaiting, p.Status.State, "it is started again")
				return
			}
			assert.Nil(t, p.Start)
			assert.Equal(t, v1alpha1.RunStopped, p.Status.State, "Restores may begin")
			assert.Equal(t, v1alpha1.ReasonLogGap, p.Outcome.Reason)
			assert.Contains(t, p.Outcome.Message, "Restore back has written the cluster since the log ended")

			l.DeletionTimestamp = &metav1.Time{Time: clock()}
			assert.True(t, MakePlan(l, seen).Release, "it can be deleted")
		})
	}
}

// The failure is over when the next Job runs: of one that waited for its cluster first, nothing but
// "the run has failed" was left.
func TestBR01ALogBackupThatIsTriedAgainSaysWhatItDoes(t *testing.T) {
	l := running()
	l.Status.Failures = 1
	seen := Seen{Group: group(), Image: image, Now: clock().Add(time.Hour)}
	seen.Group.Status.Conditions[0].Status = metav1.ConditionFalse
	p := MakePlan(l, seen)
	require.Equal(t, v1alpha1.ReasonWaitingForTiDBGroup, p.Outcome.Reason)
	l.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReconciling, Status: metav1.ConditionTrue, Reason: p.Outcome.Reason}}
	seen.Group = group()
	p = MakePlan(l, seen)
	require.NotNil(t, p.Start)
	assert.Equal(t, v1alpha1.ReasonCreating, p.Outcome.Reason)
	seen.Jobs = []*batchv1.Job{p.Start}
	p.Start.CreationTimestamp = metav1.NewTime(seen.Now)
	assert.Equal(t, v1alpha1.ReasonJobRunning, MakePlan(l, seen).Outcome.Reason)

	l.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonStorageRefused, Message: "why"}}
	assert.Equal(t, v1alpha1.ReasonStorageRefused, MakePlan(l, seen).Outcome.Reason, "what a user was told stands until a Job goes well")
}
