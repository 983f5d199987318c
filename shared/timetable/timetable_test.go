package timetable

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAScheduleIsReadInItsZone(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for zone, hour := range map[string]int{"": 2, "UTC": 2, "Europe/Berlin": 1, "Asia/Tokyo": 17} {
		s, err := Parse("0 2 * * *", zone)
		require.NoError(t, err)
		assert.Equal(t, hour, s.Next(now).UTC().Hour(), zone)
	}
}

func TestAnInvalidScheduleIsReported(t *testing.T) {
	_, err := Parse("CRON_TZ=UTC 0 2 * * *", "")
	require.ErrorIs(t, err, ErrZoneInSchedule)
	var zone *ZoneError
	_, err = Parse("0 2 * * *", "Mars/Olympus")
	require.ErrorAs(t, err, &zone)
	require.EqualError(t, err, "unknown time zone Mars/Olympus")
	_, err = Parse("0 2 * *", "")
	assert.ErrorContains(t, err, "expected exactly 5 fields")
}
