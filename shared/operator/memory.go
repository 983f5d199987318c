package operator

import (
	"math"
	"os"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/go-logr/logr"
)

// heapShare is how much of the container's memory limit Go's memory may take before it
// collects more often. The rest is for what Go does not count, and for peaks.
const heapShare = 0.8

// limitHeap makes the limit of the heap follow the memory limit of the container: who
// raises the one need not know of the other. GOMEMLIMIT in the environment goes first.
// Without a limit, as outside of a container, the operator runs as well.
func limitHeap(logger logr.Logger, container memlimit.Provider) {
	from := "the container's memory limit"
	if _, set := os.LookupEnv("GOMEMLIMIT"); set {
		from = "GOMEMLIMIT"
	}
	limit, err := memlimit.Set(memlimit.WithRatio(heapShare), memlimit.WithProvider(container))
	switch {
	case err != nil:
		logger.Info("the heap has no limit, because the container's memory limit cannot be read; GOMEMLIMIT sets one", "reason", err.Error())
	case limit == math.MaxInt64:
		logger.Info("the heap has no limit: neither the container nor GOMEMLIMIT sets one")
	default:
		logger.Info("the heap has a limit", "MiB", limit>>20, "from", from)
	}
}
