package job

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/backup/basis"
	"github.com/tidb-groups/tidb-groups/operators/backup/jobtemplate"
	"github.com/tidb-groups/tidb-groups/operators/backup/result"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/workload"
)

// defaultCheck is how often a Job looks at a log.
const defaultCheck = 5 * time.Minute

// keepLog is a LogBackup. Its Jobs follow one another: each brings the task to the state that is
// asked for, and reports how far the log is. Its report is in status before the Job is deleted.
func (p *planner) keepLog(l *v1alpha1.LogBackup) {
	if !p.hasFinalizer() {
		p.plan.Outcome = p.waitForStop(leaving)
		if l.DeletionTimestamp == nil {
			// No task begins before it is sure that it is stopped again.
			p.plan.Hold = true
			p.plan.Outcome = p.waitForObjects(v1alpha1.ReasonCreating, "the finalizer is added")
		}
		return
	}
	p.noteRestores(l)
	job := p.lastJob()
	runs := job != nil && !workload.HasJobEnded(job) && p.endBeside(job) == nil
	switch {
	case job != nil && !p.isOwnJob(job):
		p.plan.Outcome = p.stallForForeignJob(job)
	case job != nil && job.DeletionTimestamp != nil:
		p.plan.Outcome = p.checkTask(l)
		if stop := p.waitForStop("Job " + job.Name + " is being deleted"); stop.Reason == v1alpha1.ReasonPodTerminating {
			p.plan.Outcome = stop
		}
	case runs:
		p.logRuns(l, job)
	case job != nil && !p.hasNoted(l, job):
		p.noteReport(l, job)
	default:
		p.nextLog(l, job)
	}
}

// logState is what the task is to be.
func logState(l *v1alpha1.LogBackup) v1alpha1.LogState {
	switch {
	case l.DeletionTimestamp != nil:
		return v1alpha1.LogStopped
	case l.Spec.State == "":
		return v1alpha1.LogRunning
	}
	return l.Spec.State
}

// IsInState reports whether the task is in the state that is asked for, and the last Job did not
// fail.
func IsInState(l *v1alpha1.LogBackup, s v1alpha1.LogBackupStatus) bool {
	return string(s.State) == string(logState(l)) && s.Failures == 0
}

// checkTask says why the task is not in the state that is asked for; Done if it is. A Job that only
// looks makes no difference.
func (p *planner) checkTask(l *v1alpha1.LogBackup) step.Outcome {
	s := p.plan.Log
	s.State = p.plan.Status.State
	if s.Failures > 0 && meta.IsStatusConditionTrue(l.Status.Conditions, v1alpha1.ConditionStalled) {
		return p.asBefore()
	}
	if !IsInState(l, s) {
		return p.waitForObjects(v1alpha1.ReasonProgressing, "changing the task to state "+string(logState(l)))
	}
	return p.checkTruncation(l)
}

// logRuns is a LogBackup whose Job has not ended. One that was made for another spec is stopped
// if it cannot begin, and in any case when the LogBackup is deleted.
func (p *planner) logRuns(l *v1alpha1.LogBackup, job *batchv1.Job) {
	p.plan.Status.Attempts = l.Status.Attempts // each status is written once, when it has ended
	reason, why := p.describeBlocked(job)
	old := isOfOtherSpec(l, job)
	switch {
	case old && (why != "" || l.DeletionTimestamp != nil):
		p.deleteJob(job)
		p.plan.Outcome = p.waitForObjects(v1alpha1.ReasonProgressing, "Job "+job.Name+" was made for another spec, and is deleted")
	case why != "":
		p.plan.Outcome = p.waitForObjects(reason, why)
	default:
		p.plan.Outcome = p.checkTask(l)
		if p.plan.Outcome.Kind == step.KindWait {
			p.plan.Outcome = p.describeWork(job)
		}
	}
}

// isOfOtherSpec reports whether a Job was made for another spec than a LogBackup has.
func isOfOtherSpec(l *v1alpha1.LogBackup, job *batchv1.Job) bool {
	return job.Annotations[v1alpha1.AnnotationRunGeneration] != strconv.FormatInt(l.Generation, 10)
}

// hasNoted reports whether a Job's report is in status.
func (p *planner) hasNoted(l *v1alpha1.LogBackup, job *batchv1.Job) bool {
	s, e := l.Status, p.readEnd(job)
	return s.CompletionTime != nil && s.CompletionTime.Equal(&e.at) && s.StartTime != nil && s.StartTime.Equal(&job.CreationTimestamp)
}

// noteReport puts a Job's report into status.
func (p *planner) noteReport(l *v1alpha1.LogBackup, job *batchv1.Job) {
	e := p.readEnd(job)
	if !e.told && p.seen.Now.Sub(e.at.Time) < lag {
		p.plan.Outcome = step.Wait("pods", lag, v1alpha1.ReasonJobRunning, "Job "+job.Name+" has ended: waiting for its pod's result")
		return
	}
	s := &p.plan.Log
	p.plan.Status.StartTime, p.plan.Status.CompletionTime = &job.CreationTimestamp, &e.at
	if told := e.result.Log; told != nil {
		if e.complete && told.Task == result.TaskRunning && told.Was == result.TaskPaused && l.Status.State == v1alpha1.RunRunning {
			e.complete, e.result.Reason, e.result.Message = false, v1alpha1.ReasonLogTaskFailed, "the task had been paused, and was resumed: TiDB pauses one whose log is 48 hours behind, and the logs of TiKV say why they write none"
		}
		p.noteTask(told, e.at)
	}
	if e.complete && e.result.Log != nil {
		s.Failures = 0
		p.plan.Outcome = p.checkTask(l)
		return
	}
	s.Failures++
	after := retryAfter(s.Failures)
	p.plan.Outcome = p.stallRun(e.reason(), fmt.Sprintf("%s; it is tried again after %s; its log: kubectl -n %s logs job/%s", strings.TrimSuffix(e.message(), "."), e.at.Add(after).UTC().Format(time.RFC3339), job.Namespace, job.Name))
	p.plan.Outcome.After = after
}

// noteTask has status say how far the log is.
func (p *planner) noteTask(told *result.Log, at metav1.Time) {
	s := &p.plan.Log
	p.plan.Status.State = v1alpha1.RunState(told.Task)
	if told.Start != "" {
		s.TaskStart, s.LogStart = told.Start, cmp.Or(s.LogStart, told.Start)
	}
	if told.Truncated != "" {
		s.TruncatedTo = told.Truncated
	}
	if tso, known := result.ParseTSO(told.Checkpoint); known {
		when := result.TimeOf(tso)
		s.Checkpoint, s.CheckpointTime = told.Checkpoint, &metav1.Time{Time: when.Truncate(time.Second)}
		s.CheckpointLag = max(0, at.Sub(when)).Truncate(time.Second).String()
	}
}

// nextLog makes the next Job when it is due. The Job of before goes, at once if it did not fail.
func (p *planner) nextLog(l *v1alpha1.LogBackup, job *batchv1.Job) {
	p.plan.Outcome = p.checkTask(l)
	if job != nil && l.Status.Failures == 0 {
		p.deleteJob(job)
		return
	}
	if l.DeletionTimestamp != nil && p.hasNoTask(l) {
		p.planDeletion(l.Spec.CleanupPolicy, jobtemplate.FilesOfLog(l))
		return
	}
	due, after := p.logDue(l, job)
	switch {
	case p.plan.Log.RestoredBy != "" && logState(l) != v1alpha1.LogStopped:
		p.plan.Outcome = p.stallForRestore(l)
	case !due:
		p.plan.Wake = after
	case job != nil:
		p.deleteJob(job)
	default:
		p.beginLog(l)
	}
}

// noteRestores has status name a Restore that BR has begun since the task was stopped, also when that is
// deleted. One that waits has looked, and has written nothing.
func (p *planner) noteRestores(l *v1alpha1.LogBackup) {
	if l.Status.State != v1alpha1.RunStopped || l.Status.LogStart == "" || l.Status.StartTime == nil {
		return
	}
	for _, r := range p.seen.Restores {
		switch at := r.Status.StartTime; {
		case at == nil || at.Before(l.Status.StartTime):
		case r.Status.State != v1alpha1.RunWaiting:
			p.plan.Log.RestoredBy = r.Name
		case r.Name == p.plan.Log.RestoredBy:
			p.plan.Log.RestoredBy = ""
		}
	}
}

// stallForRestore says that a log does not go on: BR would, where it ended, and no log has what BR restored. A
// later Restore to a moment would lack that without a word.
func (p *planner) stallForRestore(l *v1alpha1.LogBackup) step.Outcome {
	return p.stallRun(v1alpha1.ReasonLogGap, fmt.Sprintf("Restore %s has written the cluster since the log ended, and the log would lack what it wrote: create another LogBackup, and then a Backup of type Physical of the whole cluster; this one stays for moments before: kubectl -n %s patch logbackup %s --type=merge -p '{\"spec\":{\"state\":\"Stopped\"}}'", p.plan.Log.RestoredBy, l.Namespace, l.Name))
}

// hasNoTask reports whether nothing of a LogBackup that is being deleted is in PD: its task was
// stopped, none was ever started, or the cluster is gone.
func (p *planner) hasNoTask(l *v1alpha1.LogBackup) bool {
	return IsInState(l, l.Status) || l.Status.PDGroup == "" || p.seen.Group == nil && !p.seen.Cluster
}

// logDue reports whether the next Job is to be made, and otherwise how long until then; 0 for
// never.
func (p *planner) logDue(l *v1alpha1.LogBackup, job *batchv1.Job) (bool, time.Duration) {
	s := l.Status
	if s.CompletionTime == nil {
		return true, 0
	}
	since := p.seen.Now.Sub(s.CompletionTime.Time)
	if s.Failures > 0 {
		changed := job != nil && isOfOtherSpec(l, job)
		left := retryAfter(s.Failures) - since
		return changed || left <= 0, left
	}
	if !IsInState(l, s) || p.truncation(l) > 0 {
		return true, 0
	}
	if s.State == v1alpha1.RunStopped {
		return false, 0
	}
	every := defaultCheck
	if l.Spec.CheckEvery != nil {
		every = l.Spec.CheckEvery.Duration
	}
	return since >= every, every - since
}

// beginLog makes the next Job if what it needs is there.
func (p *planner) beginLog(l *v1alpha1.LogBackup) {
	f := jobtemplate.FilesOfLog(l)
	p.plan.Status.Location = f.Location()
	if p.plan.Status.State == "" {
		p.plan.Status.State = v1alpha1.RunWaiting
	}
	stopping := l.DeletionTimestamp != nil
	if stopping && p.seen.Group == nil {
		p.plan.Outcome = p.stallRun(v1alpha1.ReasonWaitingForTiDBGroup, fmt.Sprintf("TiDBGroup %s is gone, and PDGroup %s may know task %s: create the TiDBGroup, or stop the task with br log stop and let the LogBackup go: kubectl -n %s patch logbackup %s --type=merge -p '{\"metadata\":{\"finalizers\":null}}'", l.Spec.TiDBGroup.Name, l.Status.PDGroup, jobtemplate.TaskName(l), l.Namespace, l.Name))
		return
	}
	if wait := p.checkGate(f); wait.Kind != step.KindDone && (!stopping || p.seen.Image == "") {
		p.plan.Outcome = wait
		return
	}
	if l.Status.PDGroup == "" {
		// That a task may be there stands in status before one is.
		p.plan.Log.PDGroup = p.seen.Group.PDGroupName()
		return
	}
	if logState(l) != v1alpha1.LogStopped && p.plan.Status.State == v1alpha1.RunStopped {
		// That a task may be there stands in status before one is started again, too.
		p.plan.Status.State, p.plan.Wake = v1alpha1.RunWaiting, step.ConflictDelay
		return
	}
	p.plan.Start = jobtemplate.RenderLog(l, jobtemplate.Task{State: logState(l), Truncate: p.truncation(l)}, p.seen.Group, p.seen.Image, p.plan.Status.Attempts+1)
	if p.plan.Outcome.Kind == step.KindWait {
		p.plan.Outcome = p.waitForObjects(v1alpha1.ReasonCreating, "Job "+p.plan.Start.Name+" is being made")
	}
}

// stopsLog reports whether the run is a LogBackup whose task is to be stopped. A Restore into a group
// that lets no client in waits for that.
func (p *planner) stopsLog() bool {
	l, is := p.run.(*v1alpha1.LogBackup)
	return is && logState(l) == v1alpha1.LogStopped
}

// gateLog has a task begin when no restore runs, which BR would refuse.
func (p *planner) gateLog() step.Outcome {
	s := p.plan.Status.State
	if p.run.GetDeletionTimestamp() != nil || s == v1alpha1.RunRunning || s == v1alpha1.RunPaused {
		return step.Done()
	}
	for _, j := range p.seen.Others {
		if j.Labels[v1alpha1.LabelComponent] == jobtemplate.ComponentRestore && !workload.HasJobEnded(j) {
			return p.waitForObjects(v1alpha1.ReasonWaitingForRun, fmt.Sprintf("Job %s restores into the cluster, and BR begins no log meanwhile: kubectl -n %s describe job %s", j.Name, j.Namespace, j.Name))
		}
	}
	return step.Done()
}

// truncation is the time stamp before which the log is to be deleted; 0 for nothing. While a
// Restore reads the log, or the task is to be stopped, nothing is.
func (p *planner) truncation(l *v1alpha1.LogBackup) uint64 {
	end, known := result.ParseTSO(l.Status.Checkpoint)
	to := p.truncateTo(l)
	if !known || p.seen.Read || to <= beginOf(l) || to > end || logState(l) == v1alpha1.LogStopped {
		return 0
	}
	return to
}

// truncateTo is the time stamp that spec asks for: that of a time, or of the oldest Backup that a
// log goes on from. 0 if it asks for none, or if the time stamp of any of them is not known.
func (p *planner) truncateTo(l *v1alpha1.LogBackup) uint64 {
	if l.Spec.TruncateBefore != nil {
		return result.TSOFromTime(l.Spec.TruncateBefore.Time)
	}
	if l.Spec.TruncateWith == nil {
		return 0
	}
	return basis.FindOldest(p.seen.Backups, p.logOf(l))
}

// checkTruncation says why nothing is deleted from a log although spec asks for it; Done if that is not so.
// Without a word a bucket would grow, or, with a time that the log has not reached, all of it would go.
func (p *planner) checkTruncation(l *v1alpha1.LogBackup) step.Outcome {
	if l.DeletionTimestamp != nil {
		return step.Done()
	}
	if with := l.Spec.TruncateWith; with != nil {
		reason, wrong := p.judgeSchedule(l)
		if wrong == "" {
			return step.Done()
		}
		return p.stallRun(reason, fmt.Sprintf("spec.truncateWith: BackupSchedule %s %s, and nothing is deleted from the log: name one of type Physical that copies everything of the cluster, in the log's bucket with the log's Secret, or none: kubectl -n %s patch logbackup %s --type=merge -p '{\"spec\":{\"truncateWith\":null}}'", with.Name, wrong, l.Namespace, l.Name))
	}
	end, known := result.ParseTSO(p.plan.Log.Checkpoint)
	if l.Spec.TruncateBefore == nil || !known || result.TSOFromTime(l.Spec.TruncateBefore.Time) <= end {
		return step.Done()
	}
	return p.stallRun(v1alpha1.ReasonInvalidSpec, fmt.Sprintf("spec.truncateBefore %s is after the end of the log, %s, and nothing is deleted: set an earlier time, or none: kubectl -n %s patch logbackup %s --type=merge -p '{\"spec\":{\"truncateBefore\":null}}'", result.FormatMoment(result.TSOFromTime(l.Spec.TruncateBefore.Time)), result.FormatMoment(end), l.Namespace, l.Name))
}

// judgeSchedule says why a log is not truncated with the Backups of the schedule that it names; empty if it
// is. Those of one that is gone count all the same.
func (p *planner) judgeSchedule(l *v1alpha1.LogBackup) (reason, wrong string) {
	s := p.seen.Schedule
	if s == nil {
		if len(p.seen.Backups) > 0 {
			return "", ""
		}
		return v1alpha1.ReasonMissingReference, "does not exist"
	}
	return v1alpha1.ReasonInvalidSpec, basis.DescribeMismatch(s.Spec.Template, p.logOf(l))
}

// SummarizeLog says what a LogBackup whose task is in the state that is asked for has come to.
func SummarizeLog(s *v1alpha1.LogBackupStatus) string {
	end, known := result.ParseTSO(s.Checkpoint)
	if !known {
		return "the cluster has no task"
	}
	begin := beginOf(&v1alpha1.LogBackup{Status: *s})
	text := fmt.Sprintf("the log has all changes from %s to %s", result.FormatMoment(begin), result.FormatMoment(end))
	switch s.State {
	case v1alpha1.RunPaused:
		return text + "; the task is paused, and PD keeps what it has not written for 24 hours"
	case v1alpha1.RunStopped:
		return text + "; the task is stopped"
	default:
		return text + ", and goes on"
	}
}
