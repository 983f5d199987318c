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
	require.ErrorContains(t, err, "expected exactly 5 fields")
	_, err = Parse("@every 1h", "")
	require.ErrorContains(t, err, "says no time of the clock")
	_, err = Parse("@midnight", "")
	assert.NoError(t, err)
}

func TestWhereTheClockIsChangedATimeCountsOnce(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	for name, c := range map[string]struct {
		schedule, after string
		next            []string
	}{
		"it is put forward":        {"0 2 * * *", "2026-03-28T00:00", []string{"28T02:00 CET", "29T03:00 CEST", "30T02:00 CEST"}},
		"it is put back":           {"30 2 * * *", "2026-10-24T00:00", []string{"24T02:30 CEST", "25T02:30 CEST", "26T02:30 CET"}},
		"on such a day of a week":  {"0 2 * * 0", "2026-03-23T00:00", []string{"29T03:00 CEST", "05T02:00 CEST"}},
		"each hour, forward":       {"0 * * * *", "2026-03-29T00:30", []string{"29T01:00 CET", "29T03:00 CEST"}},
		"each hour, back":          {"0 * * * *", "2026-10-25T01:30", []string{"25T02:00 CEST", "25T02:00 CET", "25T03:00 CET"}},
		"right after it":           {"30 2 * * *", "2026-03-29T03:10", []string{"29T03:30 CEST", "30T02:30 CEST"}},
		"at the same time":         {"30 2 * * *", "2026-03-29T03:30", []string{"30T02:30 CEST"}},
		"some in the hour skipped": {"*/20 2 * * *", "2026-03-28T03:00", []string{"29T03:00 CEST", "29T03:20 CEST", "29T03:40 CEST", "30T02:00 CEST"}},
		"each second hour":         {"0 */2 * * *", "2026-10-25T01:30", []string{"25T02:00 CEST", "25T04:00 CET"}},
		"each second hour forward": {"0 */2 * * *", "2026-03-29T00:30", []string{"29T03:00 CEST", "29T04:00 CEST"}},
	} {
		s, err := Parse(c.schedule, "Europe/Berlin")
		require.NoError(t, err)
		at, err := time.ParseInLocation("2006-01-02T15:04", c.after, berlin)
		require.NoError(t, err)
		for _, want := range c.next {
			at = s.Next(at)
			assert.Equal(t, want, at.In(berlin).Format("02T15:04 MST"), name)
		}
	}
	never, err := Parse("0 2 30 2 *", "Europe/Berlin")
	require.NoError(t, err)
	assert.True(t, never.Next(time.Now()).IsZero())
}
