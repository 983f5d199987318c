package timetable

import (
	"errors"
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // the images have no time zones

	"github.com/robfig/cron/v3"
)

// ErrZoneInSchedule is what is wrong with a schedule that brings its time zone along.
var ErrZoneInSchedule = errors.New("the time zone has a field of its own")

// errNoTime is what is wrong with @every: it counts from whenever it is asked, so that the next
// time is never reached.
var errNoTime = errors.New("it says no time of the clock")

// ZoneError is a time zone that is not known.
type ZoneError struct{ Zone string }

func (e *ZoneError) Error() string { return fmt.Sprintf("unknown time zone %s", e.Zone) }

// Parse reads a schedule in a time zone by its IANA name, UTC if it is empty. What is wrong
// with it is a *ZoneError, ErrZoneInSchedule, or of the fields.
func Parse(schedule, zone string) (cron.Schedule, error) {
	if strings.Contains(schedule, "=") {
		return nil, ErrZoneInSchedule
	}
	if zone == "" {
		zone = "UTC"
	}
	location, err := time.LoadLocation(zone)
	if err != nil {
		return nil, &ZoneError{zone}
	}
	clock, err := cron.ParseStandard("CRON_TZ=UTC " + schedule)
	if err != nil {
		return nil, err
	}
	fields, ok := clock.(*cron.SpecSchedule)
	switch {
	case !ok:
		return nil, errNoTime
	case fields.Hour&everyHour != 0:
		fields.Location = location
		return fields, nil
	}
	return zoned{clock, location}, nil
}
