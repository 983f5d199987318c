package schedule

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// byCompletion orders Backups by when they ended, and by name among equals.
func byCompletion(a, b *v1alpha1.Backup) int {
	return cmp.Or(endOf(a).Compare(endOf(b)), cmp.Compare(a.Name, b.Name))
}

// endOf is when a Backup ended.
func endOf(b *v1alpha1.Backup) time.Time {
	if b.Status.CompletionTime == nil {
		return time.Time{}
	}
	return b.Status.CompletionTime.Time
}

// completeBackups returns the complete Backups that stay for the time being, the newest first.
func completeBackups(own []*v1alpha1.Backup) []*v1alpha1.Backup {
	out := slices.DeleteFunc(slices.Clone(own), func(b *v1alpha1.Backup) bool {
		return b.DeletionTimestamp != nil || b.Status.State != v1alpha1.RunComplete || b.Status.CompletionTime == nil
	})
	slices.SortFunc(out, func(a, b *v1alpha1.Backup) int { return byCompletion(b, a) })
	return out
}

// findSuperfluous returns the Backups that retention deletes: complete ones beyond maxBackups or
// older than maxAge, and failed ones that are older than all complete ones that stay. The
// newest complete one always stays, and one that a Restore reads.
func findSuperfluous(s *v1alpha1.BackupSchedule, own []*v1alpha1.Backup, seen Seen) []*v1alpha1.Backup {
	if s.Spec.MaxBackups == nil && s.Spec.MaxAge == nil {
		return nil
	}
	good := completeBackups(own)
	if len(good) == 0 {
		return nil
	}
	var out []*v1alpha1.Backup
	oldest, stays := good[0], keptNames(s, good)
	for n, b := range good {
		many := s.Spec.MaxBackups != nil && n >= int(*s.Spec.MaxBackups)
		old := s.Spec.MaxAge != nil && seen.Now.Sub(endOf(b)) > s.Spec.MaxAge.Duration
		if n > 0 && (many || old) && !stays[b.Name] && !seen.Read[b.Name] {
			out = append(out, b)
			continue
		}
		oldest = b
	}
	for _, b := range own {
		if b.DeletionTimestamp == nil && b.Status.State == v1alpha1.RunFailed && byCompletion(b, oldest) < 0 {
			out = append(out, b)
		}
	}
	return out
}

// keptNames returns the names of the complete Backups, the newest first, that spec.keep has stay: the
// newest of each of the last days, weeks and months that have any.
func keptNames(s *v1alpha1.BackupSchedule, good []*v1alpha1.Backup) map[string]bool {
	out := map[string]bool{}
	if s.Spec.Keep == nil {
		return out
	}
	zone, err := time.LoadLocation(s.Spec.TimeZone)
	if err != nil {
		zone = time.UTC // a schedule that cannot be read deletes nothing
	}
	for _, k := range []struct {
		many   *int32
		period func(time.Time) string
	}{
		{s.Spec.Keep.Daily, func(at time.Time) string { return at.Format(time.DateOnly) }},
		{s.Spec.Keep.Weekly, func(at time.Time) string {
			year, week := at.ISOWeek()
			return fmt.Sprintf("%d-%d", year, week)
		}},
		{s.Spec.Keep.Monthly, func(at time.Time) string { return at.Format("2006-01") }},
	} {
		periods := map[string]bool{}
		for _, b := range good {
			period := k.period(endOf(b).In(zone))
			if k.many != nil && !periods[period] && len(periods) < int(*k.many) {
				periods[period], out[b.Name] = true, true
			}
		}
	}
	return out
}

// nextExpiry is how long it takes until the next complete Backup is older than maxAge; 0 if none
// will be, but for the newest.
func nextExpiry(s *v1alpha1.BackupSchedule, good []*v1alpha1.Backup, now time.Time) time.Duration {
	if s.Spec.MaxAge == nil {
		return 0
	}
	soonest := time.Duration(0)
	for n, b := range good {
		left := endOf(b).Add(s.Spec.MaxAge.Duration).Sub(now) + time.Second
		if n > 0 && left > 0 && (soonest == 0 || left < soonest) {
			soonest = left
		}
	}
	return soonest
}
