package timetable

import (
	"time"

	"github.com/robfig/cron/v3"
)

// everyHour is set in the hours of a schedule that has * for them. Then each hour counts, one that
// the clock shows twice too.
const everyHour = 1 << 63

// zoned is a schedule by the clock of a zone. Where the clock is put forward, a time that does
// not exist is an hour later; where it is put back, a time that comes twice counts once. The
// library leaves the one out and counts the other twice.
type zoned struct {
	clock cron.Schedule // in UTC, whose clock is never put forward or back
	zone  *time.Location
}

// Next implements cron.Schedule.
func (z zoned) Next(after time.Time) time.Time {
	at := shownIn(after.In(z.zone), time.UTC).Add(-putForward(after, z.zone))
	for {
		at = z.clock.Next(at)
		if at.IsZero() {
			return at
		}
		if next := firstShown(at, z.zone); next.After(after) {
			return next
		}
	}
}

// recent is how long before a time the clock may have been put forward for times that it skipped
// to come still: each is an hour later, or two where the clock is put forward by so much.
const recent = 3 * time.Hour

// putForward is by how much the clock of a zone was put forward recently.
func putForward(t time.Time, zone *time.Location) time.Duration {
	_, before := t.Add(-recent).In(zone).Zone()
	_, now := t.In(zone).Zone()
	return time.Duration(max(now-before, 0)) * time.Second
}

// firstShown is the first time at which the clock of a zone shows what that of UTC shows at
// another; if it never does, that time by the clock as it was before.
func firstShown(at time.Time, zone *time.Location) time.Time {
	_, offset := shownIn(at, zone).AddDate(0, 0, -1).Zone()
	first := at.Add(-time.Duration(offset) * time.Second).In(zone)
	if some := shownIn(at, zone); !showsSame(first, at) && showsSame(some, at) {
		return some
	}
	return first
}

// shownIn is a time at which the clock of a zone shows what t shows, if there is one.
func shownIn(t time.Time, zone *time.Location) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), zone)
}

// showsSame reports whether two times look the same on the clocks of their zones.
func showsSame(a, b time.Time) bool { return shownIn(a, time.UTC).Equal(shownIn(b, time.UTC)) }
