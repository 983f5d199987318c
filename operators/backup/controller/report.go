package controller

import (
	"cmp"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/backup/job"
	"github.com/tidb-groups/tidb-groups/operators/backup/schedule"
	"github.com/tidb-groups/tidb-groups/shared/conditions"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// reportRun computes the status of a Backup, a LogBackup or a Restore. It is pure.
func reportRun(run v1alpha1.Run, p job.Plan, outcome step.Outcome, now time.Time) (v1alpha1.RunStatus, *conditions.Set) {
	set := conditions.New(run.GetRunStatus().Conditions, run.GetGeneration(), now)
	status := p.Status
	status.ObservedGeneration = run.GetGeneration()
	summary := "all was copied"
	if status.Size != "" {
		summary = fmt.Sprintf("complete: %s in %s, as of TSO %s", status.Size, status.Location, cmp.Or(status.TSO, "unknown"))
	}
	serving := status.State == v1alpha1.RunComplete
	if l, is := run.(*v1alpha1.LogBackup); is {
		p.Log.State = status.State
		serving, summary = job.IsInState(l, p.Log), job.SummarizeLog(&p.Log)
	}
	set.Finish(conditions.Verdict{Serving: serving, Summary: summary, Outcome: step.Worst(outcome, p.Outcome)})
	status.Conditions = set.List()
	status.Reason, status.Message = set.Headline()
	return status, set
}

// reportSchedule computes the status of a BackupSchedule. It is pure.
func reportSchedule(s *v1alpha1.BackupSchedule, p schedule.Plan, outcome step.Outcome, now time.Time) (v1alpha1.BackupScheduleStatus, *conditions.Set) {
	set := conditions.New(s.Status.Conditions, s.Generation, now)
	status := p.Status
	if outcome.Kind != step.KindDone {
		// Whether the Backup was made is not known: the time is due until it is.
		status.LastRun = s.Status.LastRun
	}
	status.ObservedGeneration = s.Generation
	worst := step.Worst(outcome, p.Outcome, p.Last)
	set.Finish(conditions.Verdict{Serving: worst.Kind != step.KindStall, Summary: summarizeSchedule(&status, s.Spec.Paused), Outcome: worst, Paused: s.Spec.Paused})
	status.Conditions = set.List()
	status.Reason, status.Message = set.Headline()
	return status, set
}

// summarizeSchedule says what a schedule has come to.
func summarizeSchedule(status *v1alpha1.BackupScheduleStatus, isPaused bool) string {
	last, next := "no backup has ended yet", "the next begins at "+formatTime(status.NextRun)
	if status.LastBackup != "" {
		last = "the last backup is " + status.LastBackup
	}
	if isPaused {
		next = "none begins while spec.paused is true"
	}
	return last + "; " + next
}

// formatTime tells a time.
func formatTime(t *metav1.Time) string {
	if t == nil {
		return "no time"
	}
	return t.UTC().Format(time.RFC3339)
}
