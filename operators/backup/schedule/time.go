package schedule

import (
	"errors"
	"fmt"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/timetable"
)

// Parse reads the times of a schedule.
func Parse(spec *v1alpha1.BackupScheduleSpec) (cron.Schedule, error) {
	out, err := timetable.Parse(spec.Schedule, spec.TimeZone)
	var zone *timetable.ZoneError
	switch {
	case err == nil && out.Next(time.Unix(0, 0)).IsZero(): // none in five years
		return nil, fmt.Errorf("spec.schedule: %q never comes, for no month that it names has such a day; to make no backups set spec.paused to true", spec.Schedule)
	case err == nil:
		return out, nil
	case errors.Is(err, timetable.ErrZoneInSchedule):
		return nil, fmt.Errorf("spec.schedule: %q: %w: spec.timeZone", spec.Schedule, err)
	case errors.As(err, &zone):
		return nil, fmt.Errorf("spec.timeZone: %q is not a known time zone: use an IANA name, such as Europe/Berlin", zone.Zone)
	}
	return nil, fmt.Errorf("spec.schedule: %q: %w: use five fields of cron, such as \"0 2 * * *\"", spec.Schedule, err)
}

// latestTime returns the last time of a schedule that is after one and not after now; false if
// there is none.
func latestTime(s cron.Schedule, after, now time.Time) (time.Time, bool) {
	// From further and further back, so that few times are walked over, however long
	// it has been looked at.
	for back := time.Minute; ; back *= 2 {
		from := now.Add(-back)
		last := !from.After(after)
		if last {
			from = after
		}
		at := s.Next(from)
		if !at.IsZero() && !at.After(now) {
			for next := s.Next(at); !next.IsZero() && !next.After(now); next = s.Next(at) {
				at = next
			}
			return at, true
		}
		if last {
			return time.Time{}, false
		}
	}
}
