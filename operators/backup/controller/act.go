package controller

import (
	"context"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/backup/job"
	"github.com/tidb-groups/tidb-groups/operators/backup/schedule"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// act carries the plan of a run out. The object is read from the API server before a Job is
// made or deleted: what has ended stands in its status, and a cache that does not know it
// yet must not have it run again.
func (r *runs) act(ctx context.Context, run v1alpha1.Run, seen job.Seen, p job.Plan) step.Outcome {
	if p.Start == nil && len(p.Stop) == 0 && !p.Hold && !p.Release {
		return step.Done()
	}
	live := r.new()
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(run), live); err != nil {
		return step.Fail(v1alpha1.ReasonRequestFailed, fmt.Errorf("get %s %s: %w", r.kind, run.GetName(), err))
	}
	if live.GetUID() != run.GetUID() || live.GetResourceVersion() != run.GetResourceVersion() {
		return step.Conflict(v1alpha1.ReasonRequestFailed, r.kind+" "+run.GetName()+" has changed meanwhile")
	}
	for _, j := range p.Stop {
		if o := r.stop(ctx, j); o.Kind != step.KindDone {
			return o
		}
	}
	switch {
	case p.Hold, p.Release:
		return r.changeFinalizer(ctx, run, p.Hold)
	case p.Start != nil && excludesOthers(run, p.Start):
		return r.startAlone(ctx, run, seen)
	case p.Start != nil:
		return r.start(ctx, run, p.Start)
	}
	return step.Done()
}

// excludesOthers reports whether a Job may run only while some others do not: one of a physical run,
// or one that begins the task of a log, which must not be while a Restore writes stores.
func excludesOthers(run v1alpha1.Run, j *batchv1.Job) bool {
	begins := run.RunKind() == v1alpha1.KindLogBackup && run.GetDeletionTimestamp() == nil && run.GetRunStatus().State == v1alpha1.RunWaiting
	return begins || j.Labels[v1alpha1.LabelPhysicalOf] != ""
}

// startAlone makes a Job that others exclude, if none is there by the API server. No cache is asked,
// and nothing else makes one meanwhile: one operator is the leader. That a log may begin stands
// in the status of its LogBackup before.
func (r *runs) startAlone(ctx context.Context, run v1alpha1.Run, seen job.Seen) step.Outcome {
	r.physical.Lock()
	defer r.physical.Unlock()
	var err error
	if seen.Others, err = physicalJobs(ctx, r.Live, run.GetNamespace(), seen.Group.PDGroupName()); err != nil {
		return step.Fail(v1alpha1.ReasonRequestFailed, err)
	}
	if run.RunKind() == v1alpha1.KindRestore {
		if seen.Logs, err = logsOf(ctx, r.Live, run.GetNamespace()); err != nil {
			return step.Fail(v1alpha1.ReasonRequestFailed, err)
		}
	}
	p := planRun(run, seen)
	if p.Start == nil {
		return step.Conflict(p.Outcome.Reason, p.Outcome.Message)
	}
	return r.start(ctx, run, p.Start)
}

// stop deletes a Job. In the foreground it is there until its pod is not.
func (r *runs) stop(ctx context.Context, j *batchv1.Job) step.Outcome {
	err := r.Client.Delete(ctx, j, client.Preconditions{UID: &j.UID, ResourceVersion: &j.ResourceVersion}, client.PropagationPolicy(metav1.DeletePropagationForeground))
	switch {
	case apierrors.IsConflict(err):
		return step.Conflict(v1alpha1.ReasonRequestFailed, "Job "+j.Name+" has changed meanwhile")
	case client.IgnoreNotFound(err) != nil:
		return step.Fail(v1alpha1.ReasonRequestFailed, fmt.Errorf("delete Job %s: %w", j.Name, err))
	}
	return step.Done()
}

// start makes a Job. In a namespace that is being deleted none can be: there a Backup goes
// without its files.
func (r *runs) start(ctx context.Context, run v1alpha1.Run, j *batchv1.Job) step.Outcome {
	err := r.Client.Create(ctx, j)
	switch {
	case apierrors.IsAlreadyExists(err):
		return r.describeExistingJob(ctx, run, j.Name)
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) && run.GetDeletionTimestamp() != nil:
		r.Recorder.Eventf(run, nil, corev1.EventTypeWarning, "FilesKept", "Delete", "the namespace is being deleted, and no Job can delete the files: they stay in %s", run.GetRunStatus().Location)
		return r.changeFinalizer(ctx, run, false)
	case err != nil:
		return step.Fail(v1alpha1.ReasonRequestFailed, fmt.Errorf("create Job %s: %w", j.Name, err))
	}
	r.Recorder.Eventf(run, j, corev1.EventTypeNormal, "JobCreated", "Create", "created Job %s", j.Name)
	return step.Done()
}

// describeExistingJob is what follows from a Job that is there, and that the cache does not show: not yet,
// or because it has not our labels.
func (r *runs) describeExistingJob(ctx context.Context, run v1alpha1.Run, name string) step.Outcome {
	var j batchv1.Job
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: run.GetNamespace(), Name: name}, &j)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return step.Fail(v1alpha1.ReasonRequestFailed, fmt.Errorf("get Job %s: %w", name, err))
	case err == nil && j.Labels[v1alpha1.LabelRun] != string(run.GetUID()):
		o := step.Stall(v1alpha1.ReasonNameConflict, fmt.Sprintf("Job %s belongs to another owner: delete it: kubectl -n %s delete job %s", name, run.GetNamespace(), name))
		o.After = retry
		return o
	}
	return step.Conflict(v1alpha1.ReasonRequestFailed, "Job "+name+" has just been made")
}

// changeFinalizer gives a Backup or a LogBackup the finalizer, or takes it.
func (r *runs) changeFinalizer(ctx context.Context, run v1alpha1.Run, hold bool) step.Outcome {
	after, _ := run.DeepCopyObject().(v1alpha1.Run)
	kept := slices.DeleteFunc(slices.Clone(run.GetFinalizers()), func(f string) bool { return f == v1alpha1.FinalizerBackup })
	if hold {
		kept = append(kept, v1alpha1.FinalizerBackup)
	}
	after.SetFinalizers(kept)
	before, _ := run.(client.Object)
	err := r.Client.Patch(ctx, after, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	switch {
	case apierrors.IsConflict(err):
		return step.Conflict(v1alpha1.ReasonRequestFailed, r.kind+" "+run.GetName()+" has changed meanwhile")
	case client.IgnoreNotFound(err) != nil:
		return step.Fail(v1alpha1.ReasonRequestFailed, fmt.Errorf("write the finalizers of %s %s: %w", r.kind, run.GetName(), err))
	}
	return step.Done()
}

// retry is when what a user has to fix, and what no watch reports, is looked at again.
const retry = 10 * time.Second

// act carries the plan of a schedule out: the Backup that is due first, then what retention
// deletes, so that whatever happens there is one too many rather than one too few.
func (r *schedules) act(ctx context.Context, s *v1alpha1.BackupSchedule, p schedule.Plan) step.Outcome {
	if p.Make == nil && len(p.Delete) == 0 {
		return step.Done()
	}
	live := &v1alpha1.BackupSchedule{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(s), live); err != nil {
		return step.Fail(v1alpha1.ReasonRequestFailed, fmt.Errorf("get BackupSchedule %s: %w", s.Name, err))
	}
	if live.UID != s.UID || live.ResourceVersion != s.ResourceVersion {
		return step.Conflict(v1alpha1.ReasonRequestFailed, "BackupSchedule "+s.Name+" has changed meanwhile")
	}
	worst := step.Done()
	if p.Make != nil {
		worst = r.make(ctx, s, p.Make)
	}
	for _, b := range p.Delete {
		worst = step.Worst(worst, r.delete(ctx, s, b))
	}
	return worst
}

// make makes the Backup of a time. Its name says which: making it twice makes one.
func (r *schedules) make(ctx context.Context, s *v1alpha1.BackupSchedule, b *v1alpha1.Backup) step.Outcome {
	err := r.Client.Create(ctx, b)
	switch {
	case apierrors.IsAlreadyExists(err):
		there := &v1alpha1.Backup{}
		if err := r.Live.Get(ctx, client.ObjectKeyFromObject(b), there); err != nil {
			return step.Fail(v1alpha1.ReasonRequestFailed, fmt.Errorf("get Backup %s: %w", b.Name, err))
		}
		if !schedule.IsOwn(s, there) {
			files := ""
			if there.Spec.CleanupPolicy == v1alpha1.CleanupDelete {
				files = " with its files"
			}
			o := step.Stall(v1alpha1.ReasonNameConflict, fmt.Sprintf("Backup %s exists and was not made by this BackupSchedule: rename the schedule, or delete the Backup%s: kubectl -n %s delete backup %s", b.Name, files, b.Namespace, b.Name))
			o.After = retry
			return o
		}
		return step.Done()
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		o := step.Stall(v1alpha1.ReasonInvalidSpec, fmt.Sprintf("spec.template: Backup %s is refused: %v", b.Name, err))
		o.After = retry
		return o
	case err != nil:
		return step.Fail(v1alpha1.ReasonRequestFailed, fmt.Errorf("create Backup %s: %w", b.Name, err))
	}
	r.Recorder.Eventf(s, b, corev1.EventTypeNormal, "BackupCreated", "Create", "created Backup %s", b.Name)
	return step.Done()
}

// delete deletes a Backup that retention does not keep, if the newest version of it agrees.
func (r *schedules) delete(ctx context.Context, s *v1alpha1.BackupSchedule, b *v1alpha1.Backup) step.Outcome {
	live := &v1alpha1.Backup{}
	err := r.Live.Get(ctx, client.ObjectKeyFromObject(b), live)
	switch {
	case apierrors.IsNotFound(err):
		return step.Done()
	case err != nil:
		return step.Fail(v1alpha1.ReasonRequestFailed, fmt.Errorf("get Backup %s: %w", b.Name, err))
	case !mayDelete(s, live, b.UID):
		return step.Conflict(v1alpha1.ReasonRequestFailed, "Backup "+b.Name+" has changed meanwhile")
	}
	restores, err := restoresOf(ctx, r.Live, s.Namespace)
	switch {
	case err != nil:
		return step.Fail(v1alpha1.ReasonRequestFailed, err)
	case schedule.FindRead(restores, []*v1alpha1.Backup{live})[live.Name]:
		return step.Conflict(v1alpha1.ReasonRequestFailed, "Backup "+b.Name+" is read by a Restore that was just created")
	}
	err = r.Client.Delete(ctx, live, client.Preconditions{UID: &live.UID, ResourceVersion: &live.ResourceVersion})
	switch {
	case apierrors.IsConflict(err):
		return step.Conflict(v1alpha1.ReasonRequestFailed, "Backup "+b.Name+" has changed meanwhile")
	case client.IgnoreNotFound(err) != nil:
		return step.Fail(v1alpha1.ReasonRequestFailed, fmt.Errorf("delete Backup %s: %w", b.Name, err))
	}
	r.Recorder.Eventf(s, live, corev1.EventTypeNormal, "BackupDeleted", "Delete", "deleted Backup %s: newer ones are complete", b.Name)
	return step.Done()
}
