package provider

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tidb-groups/tidb-groups/e2e/images"
	"github.com/tidb-groups/tidb-groups/shared/testkit/binaries"
)

// Room that is needed before anything begins, in GiB. With Go's caches empty at
// first, sources, compiled packages and programs of Kubernetes, CoreDNS, PD and the
// suite itself were seen to take less than 12.
const (
	diskToBuild = 12
	diskToRun   = 3
	memory      = 2
)

// buildPrograms builds what the cache does not have of the named programs, one tool
// module after the other, and then the modules of our own that sets of images need,
// and says what is being built and how much is left.
func buildPrograms(ctx context.Context, out io.Writer, names, sets []string) error {
	builds, err := binaries.MissingBuilds(names...)
	if err != nil {
		return err
	}
	own, err := images.ListMissingBuilds(sets...)
	if err != nil {
		return err
	}
	all := slices.Concat(builds, own)
	if err := checkRoom(len(all) > 0); err != nil {
		return err
	}
	left := time.Duration(0)
	for _, b := range all {
		left += b.Estimate
	}
	for i, b := range all {
		printLine(out, fmt.Sprintf("build %d of %d, once: %s; about %s left for all of them on two cores",
			i+1, len(all), strings.Join(b.Programs, ", "), binaries.FormatDuration(left)))
		if i >= len(builds) {
			break // these are built together
		}
		if _, err := binaries.Paths(ctx, b.Programs...); err != nil {
			return err
		}
		left -= b.Estimate
	}
	return images.BuildModules(ctx, sets...)
}

// checkRoom says what the machine lacks while nothing has begun yet.
func checkRoom(builds bool) error {
	cache, err := binaries.CacheDir()
	if err != nil {
		return err
	}
	disk, err := freeDisk(cache)
	if err != nil {
		return err
	}
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return nil //nolint:nilerr // no Linux: the container runtime looks after their memory
	}
	return checkResources(disk, availableMemory(string(text)), builds, cache)
}

// checkResources compares what a machine has, in bytes, with what is needed.
func checkResources(disk, available uint64, builds bool, cache string) error {
	need := uint64(diskToRun)
	what := "the demo and the end-to-end suite need"
	if builds {
		need, what = diskToBuild, "building Kubernetes and PD needs"
	}
	if disk>>30 < need {
		return fmt.Errorf("%s has %.1f GiB free, and %s %d GiB: make room (go clean -cache, or move it: %s=/elsewhere), then run this command again",
			cache, toGiB(disk), what, need, binaries.CacheEnv)
	}
	if available > 0 && available>>30 < memory {
		return fmt.Errorf("%.1f GiB of memory are available, and three nodes with their pods need %d GiB: stop something (ps aux --sort=-rss | head), then run this command again",
			toGiB(available), memory)
	}
	return nil
}

func toGiB(bytes uint64) float64 { return float64(bytes) / (1 << 30) }

// freeDisk is how many bytes are free where a directory is, or will be.
func freeDisk(dir string) (uint64, error) {
	for {
		var s unix.Statfs_t
		err := unix.Statfs(dir, &s)
		if err == nil {
			return s.Bavail * uint64(s.Bsize), nil //nolint:gosec // a block's size is positive
		}
		above := filepath.Dir(dir)
		if above == dir {
			return 0, fmt.Errorf("look at the room on disk: %w", err)
		}
		dir = above
	}
}

// availableMemory reads how many bytes programs can still take from /proc/meminfo.
func availableMemory(meminfo string) uint64 {
	for line := range strings.Lines(meminfo) {
		var kib uint64
		if n, err := fmt.Sscanf(line, "MemAvailable: %d kB", &kib); n == 1 && err == nil {
			return kib << 10
		}
	}
	return 0
}
