package machine

import (
	"runtime"
	"time"
)

// most is by how much a wait is stretched at most.
const most = 4

// StretchWait is a wait on a machine on which other processes want the processors too: so many
// times as long as processes wait for each of them. It stays as it is where that is unknown.
func StretchWait(d time.Duration) time.Duration {
	load, err := Load()
	if err != nil {
		return d
	}
	return stretchBy(d, load/float64(runtime.NumCPU()))
}

// stretchBy is a wait where so many processes want each processor.
func stretchBy(d time.Duration, processes float64) time.Duration {
	return time.Duration(float64(d) * min(max(1, processes), most))
}
