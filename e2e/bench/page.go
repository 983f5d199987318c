package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/tidb-groups/tidb-groups/e2e/document"
	"github.com/tidb-groups/tidb-groups/shared/testkit/machine"
)

// Run is one run of the benchmark.
type Run struct {
	// What was changed since the run before, in a few words.
	What string `json:"what"`
	// Commit that was measured.
	Commit string `json:"commit"`
	// Machine that it was measured on.
	Machine string `json:"machine"`
	// Load of the machine before the first case: how many processes wanted a processor.
	Load float64 `json:"load"`
	// Results by number of clusters.
	Results []Result `json:"results,omitempty"`
	// Processes are runs in which the operators had processes of their own.
	Processes []Processes `json:"processes,omitempty"`
	// Foreign are comparisons of runs without and with foreign objects.
	Foreign []Foreign `json:"foreign,omitempty"`
	// Bad are runs in which some clusters could not become Ready.
	Bad []Bad `json:"bad,omitempty"`
	// Edits are runs in which a user edited a cluster under load.
	Edits []Edits `json:"edits,omitempty"`
	// Kinds is what the API server keeps for the suite's kinds.
	Kinds *KindMemory `json:"kinds,omitempty"`
	// Growth are runs in which clusters came some at a time.
	Growth []Growth `json:"growth,omitempty"`
	// Adapted are runs of several operators side by side, each by its adapter.
	Adapted []Adapted `json:"adapted,omitempty"`
	// Date of a run with other operators, of which other versions come.
	Date string `json:"date,omitempty"`

	// letter of the machine among those of several; empty where all are of one.
	letter string
}

// assignLetters names the machines of runs by letters, if there are several. Counts of several can be
// compared, times cannot.
func assignLetters(runs []Run) []Run {
	all := listMachines(runs)
	out := slices.Clone(runs)
	for i := range out {
		if len(all) > 1 {
			out[i].letter = string(rune('A' + slices.Index(all, out[i].Machine)))
		}
	}
	return out
}

// listMachines are those of runs, in the order in which they come.
func listMachines(runs []Run) []string {
	var out []string
	for _, r := range runs {
		if !slices.Contains(out, r.Machine) {
			out = append(out, r.Machine)
		}
	}
	return out
}

// ofLast are the runs on the machine of the last one.
func ofLast(runs []Run) []Run {
	return slices.DeleteFunc(slices.Clone(runs), func(r Run) bool { return r.Machine != runs[len(runs)-1].Machine })
}

// kind of a run: runs of one commit and different kinds stand beside each other.
func (r Run) kind() string {
	switch {
	case len(r.Processes) > 0:
		return "processes"
	case len(r.Foreign) > 0:
		return "foreign " + r.Foreign[0].How
	case len(r.Bad) > 0:
		return "bad"
	case len(r.Edits) > 0:
		return "edits"
	case len(r.Growth) > 0:
		return "growth"
	case len(r.Adapted) > 0:
		return "adapted"
	case r.Kinds != nil:
		return "kinds"
	default:
		return "results"
	}
}

// WasMachineBusy reports whether the machine did much else when a run began: then times are
// too long, and only counts can be compared.
func (r Run) WasMachineBusy() bool { return r.Load > float64(r.processors())/2 }

// processors of the machine of a run, which may be another than this one.
func (r Run) processors() int {
	n := 1
	if at := strings.LastIndex(r.Machine, ", "); at >= 0 {
		_, _ = fmt.Sscanf(r.Machine[at:], processors, &n) // one, where it is not told
	}
	return n
}

// processors ends the name of a machine.
const processors = ", %d processors"

// Describe names this machine and says how much it does at the moment.
func Describe() (name string, load float64, err error) {
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "", 0, fmt.Errorf("find out about the processor: %w", err)
	}
	model := "unknown processor"
	for line := range strings.SplitSeq(string(info), "\n") {
		if name, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(name) == "model name" {
			model = strings.TrimSpace(value)
			break
		}
	}
	load, err = machine.Load()
	if err != nil {
		return "", 0, err
	}
	return model + fmt.Sprintf(processors, runtime.NumCPU()), load, nil
}

// writer is the command that writes the page.
const writer = "make bench"

// Record puts a run into performance.json and the tables and pictures of all runs into
// performance.md of a folder of docs. A run of the same commit on the same machine is replaced.
func Record(docs string, run Run) error {
	file := filepath.Join(docs, figures)
	runs, err := readRuns(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	runs = slices.DeleteFunc(runs, func(old Run) bool {
		return old.Commit == run.Commit && old.Machine == run.Machine && old.kind() == run.kind()
	})
	runs = append(runs, run)
	text, err := json.MarshalIndent(runs, "", "  ")
	if err != nil {
		return fmt.Errorf("encode %s: %w", file, err)
	}
	if err := os.WriteFile(file, append(text, '\n'), 0o644); err != nil { //nolint:gosec // a file of the repository
		return fmt.Errorf("write %s: %w", file, err)
	}
	return writePage(docs, runs)
}

// figures is the file of a folder of docs that has all runs.
const figures = "performance.json"

// readRuns reads the runs of a file.
func readRuns(file string) ([]Run, error) {
	text, err := os.ReadFile(filepath.Clean(file))
	if err != nil {
		return nil, fmt.Errorf("read the recorded runs: %w", err)
	}
	var runs []Run
	if err := json.Unmarshal(text, &runs); err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	return runs, nil
}

// Draw writes the tables and pictures of the recorded runs of a folder of docs, and
// measures nothing.
func Draw(docs string) error {
	runs, err := readRuns(filepath.Join(docs, figures))
	if err != nil {
		return err
	}
	return writePage(docs, runs)
}

func writePage(docs string, runs []Run) error {
	runs = assignLetters(runs)
	all := makePictures(runs)
	if err := drawPictures(docs, all); err != nil {
		return err
	}
	return document.Write(filepath.Join(docs, "performance.md"), writer, renderLinks(all)+Tables(runs))
}

// Tables renders runs as the tables of docs/performance.md, and the budget of writes.
func Tables(runs []Run) string {
	var out strings.Builder
	out.WriteString("### Per cluster, before and after each change\n\n" +
		"| commit | what it changed | clusters | all Ready, s | writes | reads | reconciles | operators, ms | garbage collector, ms |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, run := range runs {
		for i, r := range run.Results {
			commit, what := run.name(), run.What
			if run.WasMachineBusy() {
				what += fmt.Sprintf(" (on a loaded machine, %.1f processes wanted a processor: only counts can be compared)", run.Load)
			}
			if i > 0 {
				commit, what = "", ""
			}
			n := float64(r.Clusters)
			fmt.Fprintf(&out, "| %s | %s | %d | %.1f | %.0f | %.0f | %.0f | %.0f | %.0f |\n", commit, what, r.Clusters, r.Took.Seconds(),
				float64(r.Start.Writes)/n, float64(r.Start.Reads)/n, float64(r.Start.reconciled())/n, toMilliseconds(r.Start.Operators())/n, toMilliseconds(r.Start.Processor[collector])/n)
		}
	}
	if len(runs) == 0 {
		return out.String()
	}
	floorTable(&out, runs)
	adaptedTable(&out, runs)
	growthTable(&out, runs)
	processTable(&out, runs)
	kindLines(&out, runs)
	foreignTable(&out, runs)
	badTable(&out, runs)
	editTable(&out, runs)
	last := lastMeasured(runs)
	if last.letter == "" {
		fmt.Fprintf(&out, "\nMachine: %s.\n", last.Machine)
	} else {
		out.WriteString("\nMachines, of which counts can be compared and times cannot:\n\n")
		for i, machine := range listMachines(runs) {
			fmt.Fprintf(&out, "- %c: %s\n", 'A'+i, machine)
		}
	}
	told := map[int]bool{} // a case that was measured several times is told once
	for _, r := range last.Results {
		if told[r.Clusters] {
			continue
		}
		told[r.Clusters] = true
		fmt.Fprintf(&out, "\n### %d clusters, by who used the processor\n\nCommit %s.\n\n| | processor time, ms per cluster | reconciles per cluster |\n|---|---|---|\n", r.Clusters, last.Commit)
		for _, name := range slices.Sorted(maps.Keys(r.Start.Processor)) {
			if name != "" {
				fmt.Fprintf(&out, "| %s | %.0f | %.0f |\n", name, toMilliseconds(r.Start.Processor[name])/float64(r.Clusters), float64(r.Start.Reconciles[name])/float64(r.Clusters))
			}
		}
		boundTable(&out, r)
		phaseTable(&out, r)
	}
	budgetTables(&out, BudgetedOperations())
	return out.String()
}

// budgetTables tell what operations may cost.
func budgetTables(out *strings.Builder, all []Operation) {
	out.WriteString("\n### The budget of writes\n\nEvery write of the operators, on a cluster of 3 PD, 3 TiKV and 2 TiDB, from all quiet to all quiet again. Tests hold it. What comes together depends on timing: where a number does, it is from the fewest to the most. Words of a status alone may be written too, once a second at most.\n")
	for _, o := range all {
		fmt.Fprintf(out, "\n#### %s\n\n%s\n", o.Name, o.What)
		if len(o.Writes) == 0 {
			out.WriteString("\nNothing is written.\n")
			continue
		}
		out.WriteString("\n| operator | writes | how many | why |\n|---|---|---|---|\n")
		for _, w := range o.Writes {
			fmt.Fprintf(out, "| %s | %s %s | %s | %s |\n", w.Operator, w.Verb, w.Resource, w.span(), w.Why)
		}
	}
	reconcileTable(out, all)
}

// reconcileTable tells how often each controller reconciles in each operation.
func reconcileTable(out *strings.Builder, all []Operation) {
	controllers := map[string]bool{}
	for _, o := range all {
		for name := range o.Reconciles {
			controllers[name] = true
		}
	}
	names := slices.Sorted(maps.Keys(controllers))
	out.WriteString("\n### Reconciles of each operation\n\nThe most that was seen when the budget was made, and in brackets how many a test allows: a loop is many more.\n\n| operation |")
	for _, name := range names {
		fmt.Fprintf(out, " %s |", name)
	}
	out.WriteString("\n|---|" + strings.Repeat("---|", len(names)) + "\n")
	for _, o := range all {
		fmt.Fprintf(out, "| %s |", o.Name)
		for _, name := range names {
			if n, found := o.Reconciles[name]; found {
				fmt.Fprintf(out, " %d (%d) |", n.Seen, n.Most)
			} else {
				out.WriteString(" 0 |")
			}
		}
		out.WriteString("\n")
	}
}

// boundTable tells what others than the operators used. All of it and the operators' own
// together cannot be faster than the processors are.
func boundTable(out *strings.Builder, r Result) {
	if r.Start.ControlPlane == nil {
		return
	}
	n := float64(r.Clusters)
	for _, name := range slices.Sorted(maps.Keys(r.Start.ControlPlane)) {
		fmt.Fprintf(out, "| %s | %.0f | |\n", name, toMilliseconds(r.Start.ControlPlane[name])/n)
	}
	fmt.Fprintf(out, "| simulated pods and databases, and the benchmark | %.0f | |\n", toMilliseconds(r.Start.World())/n)
}

// lastMeasured is the last run that looked at each operator.
func lastMeasured(runs []Run) Run {
	for _, run := range slices.Backward(runs) {
		if len(run.Results) > 0 {
			return run
		}
	}
	return runs[len(runs)-1]
}

// processTable tells what operators in processes of their own have used, and all in one.
func processTable(out *strings.Builder, runs []Run) {
	if !slices.ContainsFunc(runs, func(r Run) bool { return len(r.Processes) > 0 }) {
		return
	}
	out.WriteString("\n### Processes and memory\n\n" +
		"Operators in processes of their own, or all in one. Memory is what the processes keep for themselves in the end, without their code.\n\n" +
		"| commit | clusters | processes | all Ready, s | processor time per cluster, ms | idle | processor time idle, ms | memory, MiB |\n|---|---|---|---|---|---|---|---|\n")
	for _, run := range runs {
		commit := run.label()
		for _, p := range run.Processes {
			fmt.Fprintf(out, "| %s | %d | %d | %.1f | %.0f | %s | %.0f | %d |\n",
				commit, p.Clusters, len(p.Memory), p.Took.Seconds(), toMilliseconds(p.Start)/float64(p.Clusters), p.IdleFor, toMilliseconds(p.Idle), p.Total()>>20)
		}
	}
}

// kindLines tell what the API server keeps for the suite's kinds.
func kindLines(out *strings.Builder, runs []Run) {
	for _, run := range runs {
		if run.Kinds != nil {
			fmt.Fprintf(out, "\nAt %s, %s.\n", run.label(), run.Kinds)
		}
	}
}

// phaseTable tells what was asked after the start.
func phaseTable(out *strings.Builder, r Result) {
	if r.Idle == nil && r.Restart == nil && r.Roll == nil {
		return
	}
	out.WriteString("\n| then | writes | reads | pods replaced | operators, ms |\n|---|---|---|---|---|\n")
	for _, phase := range []struct {
		name string
		cost *Cost
	}{{"nothing to do", r.Idle}, {"all operators restarted", r.Restart}, {fmt.Sprintf("%d stores of each cluster rolled, zone by zone", r.Stores), r.Roll}} {
		if c := phase.cost; c != nil {
			fmt.Fprintf(out, "| %s, %s | %d | %d | %d | %.0f |\n", phase.name, c.Took.Round(time.Second), c.Writes, c.Reads, c.PodsReplaced, toMilliseconds(c.Operators()))
		}
	}
}

func toMilliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
