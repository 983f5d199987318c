package bench

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"runtime/pprof"
	"slices"
	"strings"
	"time"

	"github.com/google/pprof/profile"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/tidb-groups/tidb-groups/e2e/rig"
	"github.com/tidb-groups/tidb-groups/shared/testkit/controlplane"
)

// collector stands for the garbage collector among those that use the processor.
const collector = "garbage collector"

// Function is how long a function of an operator ran, with all that it called.
type Function struct {
	Name  string
	Spent time.Duration
}

// meter measures phases of a rig.
type meter struct {
	rig *rig.Rig
	// others have pods of the operators' too.
	others []*rig.Rig
	plane  *controlplane.ControlPlane
}

// used is the processor time that each process of the control plane has used.
func (m meter) used() (map[string]time.Duration, error) {
	pids, err := m.plane.Processes()
	if err != nil {
		return nil, err
	}
	out := map[string]time.Duration{}
	for name, pid := range pids {
		if out[name], err = readProcessorTime(pid); err != nil {
			return nil, fmt.Errorf("read what %s has used: %w", name, err)
		}
	}
	return out, nil
}

// measure does something and returns what the operators asked and used meanwhile.
func (m meter) measure(do func() error) (Cost, error) {
	used, err := m.used()
	if err != nil {
		return Cost{}, err
	}
	before, refused, replaced, reconciled := m.rig.Requests.Counts(), m.rig.Requests.Conflicts(), m.replaced(), countReconciles()
	var profiled bytes.Buffer
	if err := pprof.StartCPUProfile(&profiled); err != nil {
		return Cost{}, fmt.Errorf("profile the processor: %w", err)
	}
	began := time.Now()
	err = do()
	pprof.StopCPUProfile()
	cost := Cost{Took: time.Since(began), Conflicts: m.rig.Requests.ConflictsSince(refused), Requests: m.rig.Requests.Since(before), PodsReplaced: m.replaced() - replaced}
	cost.Reconciles = map[string]int{}
	for name, n := range countReconciles() {
		cost.Reconciles[name] = n - reconciled[name]
	}
	for request, n := range cost.Requests {
		if request.Writes() {
			cost.Writes += n
		} else {
			cost.Reads += n
		}
	}
	if err != nil {
		return cost, err
	}
	if cost.ControlPlane, err = m.used(); err != nil {
		return cost, err
	}
	for name := range cost.ControlPlane {
		cost.ControlPlane[name] -= used[name]
	}
	cost.Profile = bytes.Clone(profiled.Bytes())
	p, err := profile.Parse(&profiled)
	if err != nil {
		return cost, fmt.Errorf("read the profile of the processor: %w", err)
	}
	cost.Processor, cost.Functions = sumProfile(p)
	return cost, nil
}

// countReconciles is how often each operator has reconciled an object since this process began.
func countReconciles() map[string]int {
	out := map[string]int{}
	families, err := metrics.Registry.Gather()
	if err != nil {
		return out // what could be gathered would be wrong
	}
	for _, family := range families {
		if family.GetName() != "controller_runtime_reconcile_total" {
			continue
		}
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if label.GetName() == "controller" {
					out[label.GetValue()] += int(metric.GetCounter().GetValue())
				}
			}
		}
	}
	return out
}

// replaced is how many pods were made again under their name.
func (m meter) replaced() int {
	n := 0
	for _, r := range append([]*rig.Rig{m.rig}, m.others...) {
		for key, uids := range r.Watcher.UIDs() {
			if key.Kind == "Pod" {
				n += len(uids) - 1
			}
		}
	}
	return n
}

// sumProfile adds up a profile by operator, and by the functions of the operators.
func sumProfile(p *profile.Profile) (map[string]time.Duration, []Function) {
	at := slices.IndexFunc(p.SampleType, func(t *profile.ValueType) bool { return t.Type == "cpu" })
	by, functions := map[string]time.Duration{}, map[string]time.Duration{}
	for _, sample := range p.Sample {
		spent := time.Duration(sample.Value[at])
		frames := framesOf(sample)
		name := ""
		if labels := sample.Label[rig.ProfileLabel]; len(labels) > 0 {
			name = labels[0]
		}
		if frames["runtime.gcBgMarkWorker"] || frames["runtime.bgsweep"] || frames["runtime.bgscavenge"] {
			name = collector
		}
		by[name] += spent
		if name == "" || name == collector {
			continue
		}
		for frame := range frames {
			functions[frame] += spent
		}
	}
	var out []Function
	for _, name := range slices.SortedFunc(maps.Keys(functions), func(a, b string) int {
		return cmp.Or(cmp.Compare(functions[b], functions[a]), strings.Compare(a, b))
	}) {
		out = append(out, Function{Name: name, Spent: functions[name]})
	}
	return by, out
}

// framesOf are the functions on a sample's stack, each once.
func framesOf(sample *profile.Sample) map[string]bool {
	out := map[string]bool{}
	for _, location := range sample.Location {
		for _, line := range location.Line {
			if line.Function != nil {
				out[line.Function.Name] = true
			}
		}
	}
	return out
}
