package job

import (
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/backup/jobtemplate"
	"github.com/tidb-groups/tidb-groups/operators/backup/progress"
	"github.com/tidb-groups/tidb-groups/shared/gate"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/workload"
)

const (
	// deadline is after how long an object is read even without an event of its watch.
	deadline = time.Minute
	// firstRetry and lastRetry bound how soon a run that could not begin is tried again.
	firstRetry = 20 * time.Second
	lastRetry  = 10 * time.Minute
	// maxLost is how many attempts of a backup may end without a word, as with their node.
	maxLost = 3
	// leaving is said of a run that is being deleted, and that this operator does not keep.
	leaving = "it is being deleted, and waits for its Job or for finalizers of others"
)

// Seen is what a plan is made from.
type Seen struct {
	// Jobs and Pods with the label of the run, whatever owns them.
	Jobs []*batchv1.Job
	Pods []*corev1.Pod
	// Group that the run connects to; nil if there is none. Overdue says that its operator
	// should have looked at it by now.
	Group   *v1alpha1.TiDBGroup
	Overdue bool
	// Others are Jobs of other physical runs of the cluster.
	Others []*batchv1.Job
	// Source is the Backup that a Restore names; nil if there is none.
	Source *v1alpha1.Backup
	// Log is the LogBackup that a Restore names; nil if there is none. Backups are those that
	// may be restored before its log, or those of the BackupSchedule that a LogBackup is
	// truncated with. Logs are the LogBackups of the cluster that a run writes.
	Log     *v1alpha1.LogBackup
	Backups []*v1alpha1.Backup
	Logs    []*v1alpha1.LogBackup
	// Restores are those by BR of the cluster of a LogBackup whose task is stopped.
	Restores []*v1alpha1.Restore
	// Groups are the TiDBGroups of the cluster of a log.
	Groups []string
	// Schedule that a LogBackup is truncated with; nil if there is none.
	Schedule *v1alpha1.BackupSchedule
	// Read says that a Restore which has not ended reads the log, and Cluster that the PDGroup
	// of the LogBackup is there.
	Read, Cluster bool
	// Progress is what the pod of the run tells; nil if it tells nothing.
	Progress *progress.Report
	// Image with the program; empty if it is not known.
	Image string
	// Now is when this was seen.
	Now time.Time
}

// Plan is what to do about a run.
type Plan struct {
	// Status is how far the run is; of its fields those that conditions are not.
	Status v1alpha1.RunStatus
	// Log is how far a LogBackup is, but for Status, and Backup the one that a Restore restores
	// before a log.
	Log    v1alpha1.LogBackupStatus
	Backup string
	// Wake is when to look again although nothing is waited for; 0 for never.
	Wake time.Duration
	// Start is the Job to make, nil for none, and Stop those to delete.
	Start *batchv1.Job
	Stop  []*batchv1.Job
	// Hold says that the Backup gets the finalizer, and Release that it loses it.
	Hold, Release bool
	// Outcome is why the run is not complete; Done if it is.
	Outcome step.Outcome
}

// planner plans one run.
type planner struct {
	run  v1alpha1.Run
	seen Seen
	plan Plan
}

// MakePlan decides what to do.
func MakePlan(run v1alpha1.Run, seen Seen) Plan {
	p := &planner{run: run, seen: seen}
	p.plan.Status, p.plan.Outcome = *run.GetRunStatus().DeepCopy(), step.Done()
	if l, is := run.(*v1alpha1.LogBackup); is {
		p.plan.Log = *l.Status.DeepCopy()
		p.keepLog(l)
		return p.plan
	}
	if r, is := run.(*v1alpha1.Restore); is {
		p.plan.Backup = r.Status.Backup
	}
	backup, isBackup := run.(*v1alpha1.Backup)
	switch {
	case run.GetDeletionTimestamp() != nil:
		p.plan.Outcome = p.waitForStop(leaving)
		if isBackup && p.hasFinalizer() {
			p.plan.Outcome = step.Done()
			p.planDeletion(backup.Spec.CleanupPolicy, jobtemplate.FilesOf(backup))
		}
		return p.plan
	case isBackup && p.hasFinalizer() != (backup.Spec.CleanupPolicy == v1alpha1.CleanupDelete):
		// No file is written before it is sure that it is deleted with its Backup.
		p.plan.Hold, p.plan.Release = !p.hasFinalizer(), p.hasFinalizer()
		p.plan.Outcome = p.waitForObjects(v1alpha1.ReasonCreating, "updating the finalizer for spec.cleanupPolicy")
		return p.plan
	}
	p.planRun()
	return p.plan
}

// planRun is a run that is not being deleted.
func (p *planner) planRun() {
	current := p.lastJob()
	switch {
	case p.plan.Status.HasEnded():
		p.planEnded(current)
	case current == nil && p.plan.Status.State == v1alpha1.RunRunning:
		p.failRun(v1alpha1.ReasonRunFailed, "its Job is gone, and how it ended is not known")
	case current == nil:
		p.beginJob()
	case !p.isOwnJob(current):
		p.plan.Outcome = p.stallForForeignJob(current)
	default:
		p.observeJob(current)
	}
}

// planEnded is a run whose end stands in status. The Job of one that failed keeps its log, unless
// its pod runs on: other physical runs would wait for it.
func (p *planner) planEnded(job *batchv1.Job) {
	complete := p.plan.Status.State == v1alpha1.RunComplete
	if complete || job != nil && !workload.HasJobEnded(job) {
		p.deleteJob(job)
	}
	if complete {
		p.plan.Outcome = step.Done()
		return
	}
	p.plan.Outcome = p.asBefore()
}

// asBefore repeats what is said of a run that has failed.
func (p *planner) asBefore() step.Outcome {
	for _, c := range p.run.GetRunStatus().Conditions {
		if c.Type == v1alpha1.ConditionStalled {
			return step.Stall(c.Reason, c.Message)
		}
	}
	return step.Stall(v1alpha1.ReasonRunFailed, "the run has failed")
}

// beginJob makes the next Job if what the run needs is there.
func (p *planner) beginJob() {
	f, wait := p.files()
	if wait.Kind != step.KindDone {
		p.plan.Outcome = wait
		return
	}
	p.plan.Status.State, p.plan.Status.Location = v1alpha1.RunWaiting, f.Location()
	if wait := p.checkGate(f); wait.Kind != step.KindDone {
		p.plan.Outcome = wait
		return
	}
	p.plan.Start = jobtemplate.Render(p.run, f, p.seen.Group, p.seen.Image, p.plan.Status.Attempts+1)
	p.plan.Outcome = p.waitForObjects(v1alpha1.ReasonCreating, "Job "+p.plan.Start.Name+" is being made")
}

// files are those that the run writes or reads; the outcome says why they are not known.
func (p *planner) files() (jobtemplate.Files, step.Outcome) {
	switch run := p.run.(type) {
	case *v1alpha1.Backup:
		return jobtemplate.FilesOf(run), step.Done()
	case *v1alpha1.Restore:
		if from := run.Spec.From.Storage; from != nil {
			f := jobtemplate.Files{Storage: *from, Folder: run.Spec.From.Folder, Physical: run.Spec.Type == v1alpha1.BackupPhysical}
			if folder := run.Spec.From.LogFolder; folder != "" {
				f.Log = &jobtemplate.Log{Folder: f.FolderPath(folder), Until: untilOf(run)}
			}
			return f, step.Done()
		}
		if run.Spec.From.LogBackup != nil {
			return p.pointInTimeFiles(run)
		}
		return p.sourceFiles(run)
	}
	return jobtemplate.Files{}, step.Done()
}

// sourceFiles are the files of the Backup that a Restore names.
func (p *planner) sourceFiles(run *v1alpha1.Restore) (jobtemplate.Files, step.Outcome) {
	name := run.Spec.From.Backup.Name
	b := p.seen.Source
	switch {
	case b == nil:
		return jobtemplate.Files{}, p.waitForObjects(v1alpha1.ReasonWaitingForBackup, fmt.Sprintf("Backup %s does not exist: create it, or delete the Restore and name its files by spec.from.storage and spec.from.folder", name))
	case b.DeletionTimestamp != nil:
		return jobtemplate.Files{}, p.waitForObjects(v1alpha1.ReasonWaitingForBackup, "Backup "+name+" is being deleted")
	case b.Status.State == v1alpha1.RunFailed:
		return jobtemplate.Files{}, p.stallRun(v1alpha1.ReasonBackupUnreadable, "Backup "+name+" has failed: delete the Restore, and create one that names another Backup")
	case b.Status.State != v1alpha1.RunComplete:
		return jobtemplate.Files{}, p.waitForObjects(v1alpha1.ReasonWaitingForBackup, "Backup "+name+" is not complete yet")
	}
	f := jobtemplate.FilesOf(b)
	if run.Spec.Physical != nil && !f.Physical {
		return jobtemplate.Files{}, p.stallRun(v1alpha1.ReasonInvalidSpec, "spec.physical says how BR works, and Backup "+name+" was not made by it: remove spec.physical")
	}
	if run.Spec.Logical != nil && f.Physical {
		return jobtemplate.Files{}, p.stallRun(v1alpha1.ReasonInvalidSpec, "spec.logical says how TiDB Lightning works, and BR made Backup "+name+": remove spec.logical")
	}
	return f, step.Done()
}

// checkGate says why no Job may be made; Done if one may.
func (p *planner) checkGate(f jobtemplate.Files) step.Outcome {
	name := p.run.GetTiDBGroup()
	switch g := p.seen.Group; {
	case p.seen.Image == "":
		return p.stallRun(v1alpha1.ReasonMissingReference, "the backup operator does not know the image that it runs from, which has the program: start it with --image")
	case g == nil:
		return p.waitForObjects(v1alpha1.ReasonWaitingForTiDBGroup, fmt.Sprintf("TiDBGroup %s does not exist: create it, or delete this %s and create one that names another", name, p.run.RunKind()))
	case p.seen.Overdue:
		return p.waitForObjects(v1alpha1.ReasonWaitingForTiDBGroup, "TiDBGroup "+g.Name+" has no current status: is its operator running?")
	default:
		if ready := gate.Require(v1alpha1.KindTiDBGroup, g, g.Status.Conditions, v1alpha1.ConditionReady); !ready.Open {
			return p.waitForObjects(v1alpha1.ReasonWaitingForTiDBGroup, ready.Message)
		}
		if g.IsClosed() && p.run.RunKind() != v1alpha1.KindRestore && !p.stopsLog() {
			return p.waitForObjects(v1alpha1.ReasonWaitingForTiDBGroup, "TiDBGroup "+g.Name+" lets no client in (spec.service.closed): what is in it may not be complete yet")
		}
	}
	switch {
	case p.run.RunKind() == v1alpha1.KindLogBackup:
		return p.gateLog()
	case !f.Physical:
		if why := jobtemplate.DescribeUnreadable(p.run, f, p.seen.Group); why != "" {
			return p.stallRun(v1alpha1.ReasonInvalidSpec, why)
		}
		return step.Done()
	}
	switch l := p.findActiveLog(); {
	case l == nil:
	case l.Spec.State == v1alpha1.LogStopped, l.DeletionTimestamp != nil:
		return p.waitForObjects(v1alpha1.ReasonWaitingForLogBackup, fmt.Sprintf("LogBackup %s is being stopped: BR restores only where no log is written", l.Name))
	default:
		return p.stallRun(v1alpha1.ReasonWaitingForLogBackup, fmt.Sprintf("LogBackup %s writes a log of the cluster, and BR restores only where none is written: stop it: kubectl -n %s patch logbackup %s --type=merge -p '{\"spec\":{\"state\":\"Stopped\"}}'", l.Name, l.Namespace, l.Name))
	}
	if other := p.findRunning(); other != nil {
		return p.waitForObjects(v1alpha1.ReasonWaitingForRun, fmt.Sprintf("Job %s belongs to another physical run of the cluster, and only one runs at a time: kubectl -n %s describe job %s", other.Name, other.Namespace, other.Name))
	}
	return step.Done()
}

// findRunning returns the Job of another run than this that has not ended; nil if there is none.
func (p *planner) findRunning() *batchv1.Job {
	for _, j := range p.seen.Others {
		if !workload.HasJobEnded(j) && j.Labels[v1alpha1.LabelRun] != string(p.run.GetUID()) {
			return j
		}
	}
	return nil
}

// lastJob returns the Job of the last attempt, nil if there is none.
func (p *planner) lastJob() *batchv1.Job {
	component := jobtemplate.ComponentOf(p.run.RunKind())
	last := p.plan.Status.Attempts
	for _, attempt := range []int32{last + 1, last} {
		if job := p.findJob(jobtemplate.Name(p.run, component, attempt)); job != nil {
			p.plan.Status.Attempts = attempt
			return job
		}
	}
	return nil
}

// LacksJob reports whether a run should have a Job that is not among those that were seen: a
// Job that is gone ends the run for good, so that it has to be looked for where all are.
func LacksJob(run v1alpha1.Run, jobs []*batchv1.Job) bool {
	p := &planner{run: run, seen: Seen{Jobs: jobs}}
	p.plan.Status = *run.GetRunStatus().DeepCopy()
	return p.plan.Status.State == v1alpha1.RunRunning && p.lastJob() == nil
}

// findJob returns a Job by its name, nil if there is none.
func (p *planner) findJob(name string) *batchv1.Job {
	for _, job := range p.seen.Jobs {
		if job.Name == name {
			return job
		}
	}
	return nil
}

// isOwnJob reports whether a Job was made for the run.
func (p *planner) isOwnJob(job *batchv1.Job) bool {
	if job.Labels[v1alpha1.LabelRun] != string(p.run.GetUID()) {
		return false
	}
	return job.Labels[v1alpha1.LabelComponent] == jobtemplate.ComponentClean || metav1.IsControlledBy(job, p.run)
}

// deleteJob has a Job deleted, unless it is already.
func (p *planner) deleteJob(job *batchv1.Job) {
	if job != nil && job.DeletionTimestamp == nil && p.isOwnJob(job) {
		p.plan.Stop = append(p.plan.Stop, job)
	}
}

// hasFinalizer reports whether the Backup has the finalizer.
func (p *planner) hasFinalizer() bool {
	for _, f := range p.run.GetFinalizers() {
		if f == v1alpha1.FinalizerBackup {
			return true
		}
	}
	return false
}

func (p *planner) waitForObjects(reason, message string) step.Outcome {
	return step.Wait("objects", deadline, reason, message)
}

func (p *planner) stallRun(reason, message string) step.Outcome {
	o := step.Stall(reason, message)
	o.After = deadline
	return o
}

// planDeletion deletes the files of a Backup or a LogBackup that is being deleted.
func (p *planner) planDeletion(policy v1alpha1.CleanupPolicy, f jobtemplate.Files) {
	running := false
	for _, job := range p.seen.Jobs {
		if p.isOwnJob(job) && job.Labels[v1alpha1.LabelComponent] != jobtemplate.ComponentClean {
			p.deleteJob(job)
			running = true
		}
	}
	clean := p.findJob(jobtemplate.Name(p.run, jobtemplate.ComponentClean, 1))
	switch {
	case policy != v1alpha1.CleanupDelete && clean != nil && p.isOwnJob(clean):
		// Nothing would stop it when the Backup is gone: it has no owner.
		p.deleteJob(clean)
		p.plan.Outcome = p.waitForStop("Job " + clean.Name + ", which deletes the files, is stopped before the " + p.run.RunKind() + " goes without them")
	case policy != v1alpha1.CleanupDelete:
		p.plan.Release = true
	case running:
		p.plan.Outcome = p.waitForStop("its Job is stopped before its files are deleted")
	case clean == nil && p.seen.Image == "":
		p.plan.Outcome = p.checkGate(f)
	case clean == nil:
		p.plan.Start = jobtemplate.RenderClean(p.run, f, p.seen.Group, p.seen.Image)
		p.plan.Outcome = p.waitForObjects(v1alpha1.ReasonDeleting, "Job "+p.plan.Start.Name+" is being made, which deletes the files")
	case !p.isOwnJob(clean):
		p.plan.Outcome = p.stallForForeignJob(clean)
	case clean.DeletionTimestamp != nil:
		p.plan.Outcome = p.waitForStop("its files are being deleted")
	default:
		p.readDeletion(f, clean)
	}
}

// stallForForeignJob says that another owner's Job has a name that is needed.
func (p *planner) stallForForeignJob(job *batchv1.Job) step.Outcome {
	return p.stallRun(v1alpha1.ReasonNameConflict, fmt.Sprintf("Job %s belongs to another owner: delete it: kubectl -n %s delete job %s", job.Name, job.Namespace, job.Name))
}

// describeDeletion says how far a Job that deletes files is.
func (p *planner) describeDeletion(f jobtemplate.Files, clean *batchv1.Job) step.Outcome {
	if reason, why := p.describeBlocked(clean); why != "" {
		return p.stallRun(reason, p.describeUndeleted(f, why))
	}
	return p.waitForObjects(v1alpha1.ReasonDeleting, "Job "+clean.Name+" deletes the files in "+f.Location())
}

// describeUndeleted says why files are still there, and how to let the object go without.
func (p *planner) describeUndeleted(f jobtemplate.Files, why string) string {
	return fmt.Sprintf("the files in %s cannot be deleted: %s; to keep them, set spec.cleanupPolicy to Retain: kubectl -n %s patch %s %s --type=merge -p '{\"spec\":{\"cleanupPolicy\":\"Retain\"}}'",
		f.Location(), strings.TrimSuffix(why, "."), p.run.GetNamespace(), strings.ToLower(p.run.RunKind()), p.run.GetName())
}

// readDeletion looks how the deletion of the files goes. One that failed is tried again.
func (p *planner) readDeletion(f jobtemplate.Files, clean *batchv1.Job) {
	e := p.readEnd(clean)
	switch {
	case e.complete || e.failed && e.result.Reason == v1alpha1.ReasonBucketMissing:
		p.plan.Stop, p.plan.Release = append(p.plan.Stop, clean), true
	case !e.failed:
		p.plan.Outcome = p.describeDeletion(f, clean)
	default:
		p.plan.Outcome = p.stallRun(e.reason(), p.describeUndeleted(f, e.message()))
		p.scheduleRetry(clean, e.at, deadline)
	}
}
