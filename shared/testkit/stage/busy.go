package stage

import (
	"fmt"
	"os"
	"runtime"
	"time"
)

// most is by how much a wait is stretched at most.
const most = 4

// stretchWait is a wait on a machine on which other processes want the processors too: so many
// times as long as processes wait for each of them.
func stretchWait(d time.Duration) time.Duration {
	average, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return d // not Linux
	}
	return stretchBy(d, string(average), runtime.NumCPU())
}

// stretchBy is stretchWait for what /proc/loadavg says: the average of the last minute is first.
func stretchBy(d time.Duration, average string, processors int) time.Duration {
	var running float64
	if _, err := fmt.Sscan(average, &running); err != nil {
		return d
	}
	return time.Duration(float64(d) * min(max(1, running/float64(processors)), most))
}
