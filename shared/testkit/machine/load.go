package machine

import (
	"fmt"
	"os"
)

// Load is how many processes have wanted a processor, on average over the last minute. It is an
// error where the kernel does not tell, as on anything but Linux.
func Load() (float64, error) {
	average, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0, fmt.Errorf("find out about the load: %w", err)
	}
	return parseLoad(string(average))
}

// parseLoad reads /proc/loadavg: the average of the last minute is first.
func parseLoad(average string) (load float64, err error) {
	if _, err := fmt.Sscan(average, &load); err != nil {
		return 0, fmt.Errorf("read the load %q: %w", average, err)
	}
	return load, nil
}
