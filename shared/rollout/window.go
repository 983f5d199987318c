package rollout

import (
	"errors"
	"fmt"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/origin"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/timetable"
)

// CheckUserHolds says which wish of the user holds a disruption back: the order of groups,
// a pause, the limit of a canary, a maintenance window. Done if none does.
func CheckUserHolds(g v1alpha1.Group, s observation.Snapshot, r component.Rendering, d component.Disruption, revision string) step.Outcome {
	wishes, edit := g.GetComponentSpec().Disruption, origin.OfGroup(g)
	hold := func(format string, args ...any) step.Outcome {
		return step.Wait(g.GroupKind(), member.WaitDeadline, v1alpha1.ReasonUpdateHeld, fmt.Sprintf("Instance %s (%s): ", d.Instance.Name, d.Why)+fmt.Sprintf(format, args...))
	}
	// A member whose Instance is deleted stops whatever it runs.
	roll := d.Verb == member.Restart && d.Instance.DeletionTimestamp == nil && d.Instance.Spec.Revision != revision
	switch {
	case roll && !r.RollGate.Open && r.RollGate.Message != "":
		return step.Wait("group", member.WaitDeadline, v1alpha1.ReasonWaitingForGroups, fmt.Sprintf("Instance %s (%s) waits its turn: %s", d.Instance.Name, d.Why, r.RollGate.Message))
	case wishes == nil:
		return step.Done()
	case wishes.Paused:
		return hold("%s postpones it: set it to false to go on: %s", edit.SharedField("disruption.paused"), edit.Edit())
	case roll && IsCanaryLimited(g, revision) && CountUpdated(s, revision) >= *wishes.UpdateAtMost:
		return hold("%s is %d: raise or remove it to go on: %s", edit.SharedField("disruption.updateAtMost"), *wishes.UpdateAtMost, edit.Edit())
	case len(wishes.Windows) > 0:
		opens, open := nextWindow(wishes.Windows, s.Now)
		switch {
		case open:
			return step.Done()
		case opens.IsZero():
			return hold("no maintenance window ever opens: correct %s: %s", edit.SharedField("disruption.windows"), edit.Edit())
		}
		// The time of day is in the message, never how long it still takes.
		o := hold("the next maintenance window opens at %s", opens.UTC().Format(time.RFC3339))
		o.After = min(opens.Sub(s.Now)+time.Second, time.Hour)
		return o
	}
	return step.Done()
}

// CheckDisruption returns what is wrong with spec.disruption.
func CheckDisruption(d *v1alpha1.Disruption) []string {
	if d == nil {
		return nil
	}
	var problems []string
	for i, w := range d.Windows {
		field := fmt.Sprintf("spec.disruption.windows[%d]", i)
		if _, err := parseSchedule(w); err != nil {
			problems = append(problems, fmt.Sprintf("%s: %v: use five fields of cron and an IANA time zone, such as \"0 2 * * 6\" and Europe/Berlin", field, err))
		}
		if w.Duration.Duration <= 0 {
			problems = append(problems, fmt.Sprintf("%s.duration: %s is not a positive duration: use 2h, for example", field, w.Duration.Duration))
		}
	}
	return problems
}

// parseSchedule reads when a window opens.
func parseSchedule(w v1alpha1.MaintenanceWindow) (cron.Schedule, error) {
	out, err := timetable.Parse(w.Schedule, w.TimeZone)
	if errors.Is(err, timetable.ErrZoneInSchedule) {
		return nil, fmt.Errorf("schedule %q: %w", w.Schedule, err)
	}
	return out, err
}

// nextWindow reports whether a window is open at a time, and when the next one
// opens if none is: zero if none ever does, such as on 30 February. Windows that cannot be read
// never open.
func nextWindow(windows []v1alpha1.MaintenanceWindow, now time.Time) (time.Time, bool) {
	next := time.Time{}
	for _, w := range windows {
		s, err := parseSchedule(w)
		if err != nil {
			continue
		}
		// The last opening before now is the first one after now minus the
		// duration, if it is not later than now.
		if opened := s.Next(now.Add(-w.Duration.Duration)); !opened.IsZero() && !opened.After(now) {
			return opened, true
		}
		if opens := s.Next(now); !opens.IsZero() && (next.IsZero() || opens.Before(next)) {
			next = opens
		}
	}
	return next, false
}
