package schedule

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

const (
	// deadline is after how long an object is read even without an event of its watch.
	deadline = time.Minute
	// nameTime is how a time stands in the name of a Backup.
	nameTime = "20060102-150405"
)

// Seen is what a plan is made from.
type Seen struct {
	// Backups with the label of the schedule, whatever made them.
	Backups []*v1alpha1.Backup
	// Read are the names of Backups that a Restore which has not ended reads.
	Read map[string]bool
	// Gone are the names of TiDBGroups that Backups which have not ended name, and that are not there.
	Gone map[string]bool
	// Now is when this was seen.
	Now time.Time
}

// Plan is what to do about a schedule.
type Plan struct {
	// Status of which the conditions are not filled in.
	Status v1alpha1.BackupScheduleStatus
	// Make is the Backup to make, nil for none, and Delete those to delete.
	Make   *v1alpha1.Backup
	Delete []*v1alpha1.Backup
	// Wake is when to look again.
	Wake time.Duration
	// Outcome is why the schedule is not what its spec asks for; Last what became of the
	// backup that ended last.
	Outcome, Last step.Outcome
}

// MakePlan decides what to do.
func MakePlan(s *v1alpha1.BackupSchedule, seen Seen) Plan {
	own := ownOf(s, seen.Backups)
	p := Plan{Status: *s.Status.DeepCopy(), Last: lastOutcome(s, own, seen.Gone), Outcome: step.Done()}
	good := completeBackups(own)
	p.Status.Complete, p.Status.LastBackup, p.Status.LastBackupTime = int32(len(good)), "", nil //nolint:gosec // few
	if len(good) > 0 {
		p.Status.LastBackup, p.Status.LastBackupTime = good[0].Name, good[0].Status.CompletionTime
	}
	p.Status.NextRun = nil
	if s.DeletionTimestamp != nil {
		return p
	}
	times, err := Parse(&s.Spec)
	if err != nil {
		p.Outcome = step.Stall(v1alpha1.ReasonInvalidSpec, err.Error())
		return p
	}
	if s.Spec.Paused {
		return p
	}
	p.Delete = findSuperfluous(s, own, seen)
	if soon := nextExpiry(s, good, seen.Now); soon > 0 {
		p.Wake = soon
	}
	next := times.Next(seen.Now)
	if !next.IsZero() {
		p.Status.NextRun = &metav1.Time{Time: next.UTC()}
		if until := next.Sub(seen.Now); p.Wake == 0 || until < p.Wake {
			p.Wake = until
		}
	}
	since := s.CreationTimestamp.Time
	last := s.Status.LastRun
	ahead := last != nil && last.After(seen.Now)
	if last != nil && !ahead {
		since = last.Time
	}
	due, is := latestTime(times, since, seen.Now)
	switch {
	case ahead:
		// A clock was ahead. What is due from now on is made: a Backup that is there is not
		// made twice.
		p.Status.LastRun = nil
		if is {
			p.Status.LastRun = &metav1.Time{Time: due.UTC()}
		}
	case is:
		p.planDue(s, own, due)
	}
	return p
}

// planDue makes the Backup of a time, or leaves it out because one is running.
func (p *Plan) planDue(s *v1alpha1.BackupSchedule, own []*v1alpha1.Backup, at time.Time) {
	p.Status.LastRun = &metav1.Time{Time: at.UTC()}
	running := slices.ContainsFunc(own, func(b *v1alpha1.Backup) bool { return b.DeletionTimestamp == nil && !b.Status.HasEnded() })
	if running && s.Spec.ConcurrencyPolicy != v1alpha1.ConcurrencyAllow {
		return
	}
	p.Make = renderBackup(s, at)
}

// renderBackup renders the Backup of a time. It has no owner: it stays when its schedule is
// deleted.
func renderBackup(s *v1alpha1.BackupSchedule, at time.Time) *v1alpha1.Backup {
	return &v1alpha1.Backup{
		ObjectMeta: metav1.ObjectMeta{
			Name: s.Name + "-" + at.UTC().Format(nameTime), Namespace: s.Namespace,
			Labels:      Selector(s),
			Annotations: map[string]string{v1alpha1.AnnotationScheduleUID: string(s.UID)},
		},
		Spec: v1alpha1.BackupSpec{BackupTemplate: *s.Spec.Template.DeepCopy()},
	}
}

// Selector returns the labels that a schedule's Backups have.
func Selector(s *v1alpha1.BackupSchedule) map[string]string {
	return map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy, v1alpha1.LabelSchedule: s.Name}
}

// IsOwn reports whether a schedule has made a Backup.
func IsOwn(s *v1alpha1.BackupSchedule, b *v1alpha1.Backup) bool {
	return b.Labels[v1alpha1.LabelSchedule] == s.Name && b.Annotations[v1alpha1.AnnotationScheduleUID] == string(s.UID)
}

func ownOf(s *v1alpha1.BackupSchedule, all []*v1alpha1.Backup) []*v1alpha1.Backup {
	return slices.DeleteFunc(slices.Clone(all), func(b *v1alpha1.Backup) bool { return !IsOwn(s, b) })
}

// isStuck reports whether a Backup does not go on before a user has acted: it cannot begin, or its pod
// does not run or its TiDBGroup is gone, for which a time was left out. A pod that has just been made
// may get its node, and a cluster may be on its way.
func isStuck(s *v1alpha1.BackupSchedule, b *v1alpha1.Backup, gone map[string]bool) bool {
	if b.DeletionTimestamp != nil || b.Status.HasEnded() {
		return false
	}
	noPod := slices.Contains([]string{v1alpha1.ReasonPodMissing, v1alpha1.ReasonPodUnschedulable, v1alpha1.ReasonPodTerminating, v1alpha1.ReasonImagePullFailed, v1alpha1.ReasonContainerConfigError}, b.Status.Reason)
	leftOut := s.Status.LastRun != nil && s.Status.LastRun.After(b.CreationTimestamp.Time)
	return meta.IsStatusConditionTrue(b.Status.Conditions, v1alpha1.ConditionStalled) || (noPod || gone[b.Spec.TiDBGroup.Name]) && leftOut
}

// lastOutcome says what became of the backup that ended last. One that does not go on is tried
// again without an end, and no other is made meanwhile: it has failed, too.
func lastOutcome(s *v1alpha1.BackupSchedule, own []*v1alpha1.Backup, gone map[string]bool) step.Outcome {
	for _, b := range own {
		if isStuck(s, b, gone) {
			return step.Stall(v1alpha1.ReasonRunFailed, fmt.Sprintf("Backup %s cannot begin, and others may wait for it: correct what its status says, or delete it; spec.template is for later ones: kubectl -n %s describe backup %s", b.Name, b.Namespace, b.Name))
		}
	}
	ended := slices.DeleteFunc(slices.Clone(own), func(b *v1alpha1.Backup) bool { return !b.Status.HasEnded() || b.DeletionTimestamp != nil })
	if len(ended) == 0 {
		return step.Done()
	}
	b := slices.MaxFunc(ended, byCompletion)
	if b.Status.State == v1alpha1.RunComplete {
		return step.Done()
	}
	o := step.Stall(v1alpha1.ReasonRunFailed, fmt.Sprintf("the last backup has failed: kubectl -n %s describe backup %s", b.Namespace, b.Name))
	o.After = deadline
	return o
}
