package bench

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/tidb-groups/tidb-groups/e2e/rig"
	"github.com/tidb-groups/tidb-groups/shared/testkit/binaries"
	"github.com/tidb-groups/tidb-groups/shared/testkit/controlplane"
)

// What runs took at most, of all processes together: 784 MiB with one cluster, 1070 MiB with
// 8, 4.5 GiB with 100, 6.6 GiB with 300, 13.6 GiB with 750; and 2364 MiB more among 1000
// foreign objects of each kind. The files are those of the process that has most: 285 with
// 20 clusters, the ports of members and both ends of each connection to PD that is kept.
const (
	baseMemory    = 896 << 20
	clusterMemory = 18 << 20
	// clusterGarbage is what the API server does not collect until its heap is at baseHeap.
	clusterGarbage = 20 << 20
	foreignMemory  = 2560 << 10
	baseFiles      = 128
	clusterFiles   = 16
	// baseHeap and clusterHeap are how much etcd and the API server may each take before they
	// collect garbage more often.
	baseHeap    = 2 << 30
	clusterHeap = 8 << 20
	// clusterMembers is how many members a cluster has that is measured without -stores.
	clusterMembers = 8
	// mostForeign is how many foreign objects etcd has room for, of each kind: it takes 2 GiB.
	mostForeign = 5000
)

// Machine is what a run needs of a machine, or has of it.
type Machine struct {
	// Memory in bytes, and Files that a process may have open.
	Memory, Files int64
}

// RequiredMachine is what a case needs.
func RequiredMachine(c Case) Machine {
	n := int64(c.Clusters) + int64(c.Clusters*c.Stores)/clusterMembers
	garbage := min(n*clusterGarbage, baseHeap)
	return Machine{Memory: baseMemory + garbage + n*clusterMemory + int64(c.Foreign)*foreignMemory, Files: baseFiles + n*clusterFiles}
}

// Plane is what the control plane of a case needs.
func (c Case) Plane() (controlplane.Options, error) {
	out, err := rig.PlaneOptions()
	out.HeapLimit = baseHeap + int64(c.Clusters)*clusterHeap
	if c.changes != nil {
		out.APIServerFlags = c.changes.flags
	}
	return out, err
}

// LocalMachine is what this machine has.
func LocalMachine() (Machine, error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return Machine{}, fmt.Errorf("find out how many files may be open: %w", err)
	}
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return Machine{}, fmt.Errorf("find out about the memory: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		var kib int64
		if _, err := fmt.Sscanf(line, "MemAvailable: %d kB", &kib); err == nil {
			return Machine{Memory: kib << 10, Files: int64(limit.Cur)}, nil //nolint:gosec // a limit of files
		}
	}
	return Machine{}, errors.New("find out about the memory: the kernel does not tell it")
}

// Lacks is an error that names all that a machine lacks for a case.
func (m Machine) Lacks(c Case) error {
	need := RequiredMachine(c)
	var errs []error
	if m.Memory < need.Memory {
		errs = append(errs, fmt.Errorf("memory: %d clusters and %d foreign objects of each kind take about %d MiB, and %d are available: stop other programs, or measure fewer", c.Clusters, c.Foreign, need.Memory>>20, m.Memory>>20))
	}
	if m.Files < need.Files {
		errs = append(errs, fmt.Errorf("open files: %d clusters take about %d, and a process may have %d: ulimit -n %d", c.Clusters, need.Files, m.Files, need.Files))
	}
	if c.Foreign > mostForeign {
		errs = append(errs, fmt.Errorf("-foreign %d: etcd has room for %d of each kind: try -foreign %d", c.Foreign, mostForeign, mostForeign))
	}
	return errors.Join(errs...)
}

// MissingBuilds says which programs have to be built first; empty if all are there.
func MissingBuilds() (string, error) {
	builds, err := binaries.MissingBuilds("etcd", "kube-apiserver", "kube-controller-manager", "kubectl")
	if err != nil {
		return "", fmt.Errorf("look for programs: %w", err)
	}
	var out []string
	for _, b := range builds {
		out = append(out, fmt.Sprintf("%s (about %s)", strings.Join(b.Programs, ", "), binaries.FormatDuration(b.Estimate)))
	}
	return strings.Join(out, "; "), nil
}
