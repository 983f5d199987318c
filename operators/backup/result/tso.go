package result

import (
	"strconv"
	"time"
)

// logicalBits are those of a time stamp of TiDB below its milliseconds.
const logicalBits = 18

// lastMilli is the last moment that a time stamp of TiDB can be of, in the year 4199.
const lastMilli = 1<<(64-logicalBits) - 1

// TSOFromTime is the first time stamp of TiDB of a moment.
func TSOFromTime(at time.Time) uint64 {
	return uint64(min(max(0, at.UnixMilli()), lastMilli)) << logicalBits //nolint:gosec // not below 0
}

// TimeOf is when a time stamp of TiDB was given, to the millisecond.
func TimeOf(tso uint64) time.Time { return time.UnixMilli(int64(tso >> logicalBits)).UTC() } //nolint:gosec // 46 bits

// FormatMoment is that time as a Restore takes it.
func FormatMoment(tso uint64) string { return TimeOf(tso).Format("2006-01-02T15:04:05.000Z") }

// ParseTSO reads a time stamp of TiDB; false if a text is none.
func ParseTSO(text string) (uint64, bool) {
	out, err := strconv.ParseUint(text, 10, 64)
	return out, err == nil && out > 0
}
