// Command bench measures what the operators cost, see package bench.
//
//	bench                                   1, 8 and 20 clusters
//	bench -record "statuses are compared"   the same, and its figures go into docs/performance.md
//	bench -clusters 1 -idle 1m -restart -functions 40
//	bench -draw                             no measurement: docs/performance.md again, from its figures
//	bench -clusters 10 -bad 10              one in ten never becomes Ready
//	bench -clusters 20 -edits 50            how soon an edit is acted on while 20 clusters start
//	bench -clusters 300 -at-a-time 100      what clusters cost among those that are there
//	bench -operations 5 -changes            what scaling, restarts and the end of a cluster cost, five times
//	bench -clusters 8 -adapter other.yaml   another operator and ours, side by side
//	bench -clusters 4 -foreign 200          among foreign objects, and without; -processes for memory
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/tidb-groups/tidb-groups/e2e/bench"
	"github.com/tidb-groups/tidb-groups/e2e/document"
	"github.com/tidb-groups/tidb-groups/e2e/rig"
	"github.com/tidb-groups/tidb-groups/shared/testkit/controlplane"
)

func main() { os.Exit(run()) }

// options are the command line.
type options struct {
	clusters  string
	idle      time.Duration
	restart   bool
	tls       bool
	requests  bool
	changes   bool
	functions int
	profile   string
	processes bool
	record    string
	draw      bool
	foreign   int
	bad       int
	floor     bool
	kinds     bool
	edits     int
	atATime   int
	stores    int
	base      string
	adapter   string

	operations int
}

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(os.Args) == 5 && os.Args[1] == bench.OperatorCommand {
		if err := bench.RunOperator(ctx, os.Args[2], os.Args[3], os.Args[4]); err != nil {
			fmt.Fprintln(os.Stderr, "bench operator:", err)
			return 1
		}
		return 0
	}
	var o options
	flag.StringVar(&o.clusters, "clusters", "1,8,20", "how many clusters are created at once, for each run")
	flag.DurationVar(&o.idle, "idle", 0, "watch the operators for so long when nothing is left to do")
	flag.BoolVar(&o.restart, "restart", false, "stop the operators and start them again in the end")
	flag.BoolVar(&o.tls, "tls", false, "have the clusters speak TLS, with certificates of a CA of their own")
	flag.BoolVar(&o.requests, "requests", false, "print every kind of request")
	flag.BoolVar(&o.changes, "changes", false, "print the fields that each write changed, by operator, verb and kind, from the audit log of the API server, which gets slower by it")
	flag.IntVar(&o.functions, "functions", 0, "print so many functions of the operators by their processor time")
	flag.StringVar(&o.profile, "profile", "", "write the start's profile of the processor to this file, that of -idle to one with .idle at its end, and with -at-a-time those of the starts among N clusters to files with .N, for go tool pprof -tagfocus=operator=tikvgroup")
	flag.BoolVar(&o.processes, "processes", false, "run the operators in processes of their own, and then in one, and print what these use")
	flag.IntVar(&o.foreign, "foreign", 0, "measure each run again among so many foreign ConfigMaps, Secrets and Pods of 100 KiB, and fail if the operators read or, with -processes, hold them")
	flag.IntVar(&o.bad, "bad", 0, "have one cluster in so many never become Ready, print what both kinds cost, and fail if something is written in a loop")
	flag.BoolVar(&o.kinds, "kinds", false, "print what kube-apiserver keeps in memory for our kinds, and measure nothing else")
	flag.BoolVar(&o.floor, "floor", false, "measure first how long bare StatefulSets of as many pods take, in no order")
	flag.IntVar(&o.edits, "edits", 0, "have a user edit one more cluster, at most so many times while the others start and once after each of five restarts, and print how soon the operators act on it")
	flag.IntVar(&o.atATime, "at-a-time", 0, "create so many of the clusters at a time, the next ones when these are Ready, and print what each wave costs among those that are there; with -edits a user edits while one more wave comes in the end")
	flag.IntVar(&o.stores, "stores", 0, "give each cluster so many TiKV stores over three zones, and roll them in the end")
	flag.StringVar(&o.record, "record", "", "write the figures into docs/performance.md, with these words on what was changed")
	flag.BoolVar(&o.draw, "draw", false, "write tables and pictures of docs/performance.md again from docs/performance.json, and measure nothing")
	flag.StringVar(&o.base, "base", "", "compare with the last run in this performance.json, and fail for more than 10 % more writes or reads")
	flag.StringVar(&o.adapter, "adapter", "", "measure our operators and then those of these adapters (files, with a comma between) in the same way, and print both in a table; see bench.Adapter")
	flag.IntVar(&o.operations, "operations", 0, "measure so many times what operations on one running cluster cost, print each kind of write and the reconciles, with -changes what they changed, and fail for what is not as budgeted")
	flag.Parse()
	if err := o.do(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench: FAILED:", err)
		return 1
	}
	return 0
}

func (o options) do(ctx context.Context) error {
	docs := filepath.Join(root, "docs")
	if o.draw {
		return bench.Draw(docs)
	}
	if o.adapter != "" {
		return o.sideBySide(ctx)
	}
	if err := errors.Join(o.check(), o.checkOperations()); err != nil {
		return err
	}
	run, cases, err := o.begin(ctx)
	if err != nil {
		return err
	}
	if o.operations != 0 {
		return o.measureOperations(ctx)
	}
	if err := o.measureAll(ctx, cases, &run); err != nil {
		return err
	}
	if o.base != "" {
		if err := compareRuns(o.base, run); err != nil {
			return err
		}
	}
	if o.record == "" {
		return nil
	}
	return bench.Record(docs, run)
}

// measureAll measures what is asked for: our kinds alone, or one case after the other.
func (o options) measureAll(ctx context.Context, cases []bench.Case, to *bench.Run) error {
	if o.kinds {
		return measureKinds(ctx, to)
	}
	for _, c := range cases {
		if err := o.measure(ctx, c, to); err != nil {
			return err
		}
	}
	return nil
}

// check says which flags do not go together.
func (o options) check() error {
	if o.tls && o.processes {
		return errors.New("-tls is measured with the operators in this process: leave -processes out")
	}
	if (o.floor || o.stores != 0) && (o.processes || o.foreign != 0 || o.bad != 0) {
		return errors.New("-floor and -stores are measured with the operators in this process: leave -processes, -foreign and -bad out")
	}
	if o.bad != 0 && (o.processes || o.foreign != 0 || o.restart || o.base != "") {
		return errors.New("-bad is measured alone: leave -processes, -foreign, -restart and -base out")
	}
	others := o.processes || o.foreign != 0 || o.bad != 0 || o.restart || o.base != ""
	if o.edits != 0 && (o.edits < 0 || others || o.idle != 0 && o.atATime == 0) {
		return errors.New("-edits is a number of edits, and measured alone: try -clusters 20 -edits 50, without -processes, -foreign, -bad, -restart, -idle and -base")
	}
	if o.atATime != 0 && (o.atATime < 0 || others || o.floor || o.stores != 0) {
		return errors.New("-at-a-time is a number of clusters, and measured alone: try -clusters 300 -at-a-time 100 -idle 1m, without -processes, -foreign, -bad, -restart, -floor, -stores and -base")
	}
	return nil
}

// begin says what is measured and where, warns if the machine is loaded, and returns the cases.
func (o options) begin(ctx context.Context) (bench.Run, []bench.Case, error) {
	rig.NewJournal(nil)
	run, err := describeRun(ctx, o.record)
	if err != nil {
		return run, nil, err
	}
	if run.WasMachineBusy() {
		fmt.Printf("%.1f processes want a processor already: times will be too long, only counts can be compared\n", run.Load)
	}
	cases, err := o.cases()
	return run, cases, err
}

// checkOperations says what does not go with -operations.
func (o options) checkOperations() error {
	others := o.processes || o.foreign != 0 || o.bad != 0 || o.restart || o.idle != 0 || o.tls || o.floor || o.stores != 0 || o.edits != 0 || o.atATime != 0
	prints := o.requests || o.functions != 0 || o.profile != "" || o.base != "" || o.record != ""
	if o.operations < 0 || o.operations > 0 && (others || prints) {
		return errors.New("-operations is a number of runs, and measured alone: try -operations 5 -changes, without other flags")
	}
	return nil
}

// checkAdapter says what does not go with -adapter.
func (o options) checkAdapter() error {
	others := o.processes || o.restart || o.tls || o.floor || o.stores != 0 || o.bad != 0 || o.edits != 0
	prints := o.requests || o.changes || o.functions != 0 || o.profile != "" || o.base != ""
	if others || prints || o.atATime != 0 || o.kinds {
		return errors.New("-adapter is measured alone: leave all flags but -clusters, -idle, -foreign and -record out")
	}
	if o.foreign != 0 && o.record != "" {
		return errors.New("-adapter with -foreign is not recorded: leave -record out")
	}
	return nil
}

// sideBySide measures our operators and those of the adapters in the same way.
func (o options) sideBySide(ctx context.Context) error {
	if err := o.checkAdapter(); err != nil {
		return err
	}
	run, cases, err := o.begin(ctx)
	if err != nil {
		return err
	}
	adapters, err := bench.LoadAdapters(strings.Split(o.adapter, ",")...)
	if err != nil {
		return err
	}
	for i := range cases {
		cases[i].Foreign = max(o.foreign, 0)
	}
	run.Date = time.Now().UTC().Format(time.DateOnly)
	run.Adapted, err = bench.MeasureSideBySide(ctx, adapters, cases)
	fmt.Print(bench.SideBySide(run.Adapted)) // what was measured, whatever failed then
	if o.record == "" || len(run.Adapted) == 0 {
		return err
	}
	return errors.Join(err, bench.Record(filepath.Join(root, "docs"), run))
}

// cases are those that are asked for. It is an error if the machine lacks something for one.
func (o options) cases() ([]bench.Case, error) {
	here, err := bench.LocalMachine()
	if err != nil {
		return nil, err
	}
	var out []bench.Case
	for field := range strings.SplitSeq(o.clusters, ",") {
		n, err := strconv.Atoi(field)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("-clusters %q: %q is no number of clusters: try -clusters 1,20", o.clusters, field)
		}
		c := bench.Case{Clusters: n, Idle: o.idle, Restart: o.restart, TLS: o.tls, Stores: max(o.stores, 0), Edits: o.edits}
		out = append(out, c)
		c.Foreign = max(o.foreign, 0)
		if err := here.Lacks(c); err != nil {
			return nil, fmt.Errorf("this machine lacks what -clusters %d needs: %w", n, err)
		}
		if o.bad != 0 {
			if _, _, err := bench.SplitClusters(n, o.bad); err != nil {
				return nil, err
			}
		}
	}
	unbuilt, err := bench.MissingBuilds()
	if err == nil && unbuilt != "" {
		fmt.Println("built first:", unbuilt)
	}
	return out, err
}

// measure measures a case in the way that is asked for, prints the figures and adds them to a run.
func (o options) measure(ctx context.Context, c bench.Case, to *bench.Run) error {
	if o.bad > 0 {
		found, err := measureOnPlane(ctx, c, func(plane *controlplane.ControlPlane) (bench.Bad, error) {
			return bench.MeasureBad(ctx, plane, c, o.bad)
		})
		if err != nil {
			return err
		}
		fmt.Println(found)
		to.Bad = append(to.Bad, found)
		return found.Check()
	}
	if o.edits > 0 && o.atATime == 0 {
		found, err := measureOnPlane(ctx, c, func(plane *controlplane.ControlPlane) (bench.Edits, error) {
			return bench.MeasureEdits(ctx, plane, c)
		})
		if err == nil {
			fmt.Println(found)
			to.Edits = append(to.Edits, found)
		}
		return err
	}
	if o.atATime > 0 {
		found, err := measureOnPlane(ctx, c, func(plane *controlplane.ControlPlane) (bench.Growth, error) {
			var unwritten error
			found, err := bench.MeasureGrowth(ctx, plane, c, o.atATime, func(w bench.Wave) {
				fmt.Println(w)
				unwritten = errors.Join(unwritten, o.keep(fmt.Sprint(".", w.There), w.Cost.Profile))
			})
			return found, errors.Join(err, unwritten)
		})
		if err == nil {
			printPhase("idle", found.Idle)
			to.Growth = append(to.Growth, found)
			if found.Edits != nil {
				fmt.Println(*found.Edits)
				to.Edits = append(to.Edits, *found.Edits)
			}
		}
		return err
	}
	if o.foreign > 0 {
		found, err := o.measureForeign(ctx, c)
		to.Foreign = append(to.Foreign, found...)
		return err
	}
	if o.processes {
		found, err := measureProcesses(ctx, c)
		to.Processes = append(to.Processes, found...)
		return err
	}
	result, err := o.measureHere(ctx, c)
	if err != nil {
		return err
	}
	to.Results = append(to.Results, result)
	return o.write(result)
}

// measureHere runs a case with the operators in this process.
func (o options) measureHere(ctx context.Context, c bench.Case) (bench.Result, error) {
	var floor time.Duration
	if o.floor {
		var err error
		floor, err = measureOnPlane(ctx, c, func(plane *controlplane.ControlPlane) (time.Duration, error) {
			return bench.MeasureFloor(ctx, plane, c)
		}, bench.FloorController)
		if err != nil {
			return bench.Result{}, err
		}
		fmt.Printf("%d clusters of bare StatefulSets Ready in %s\n", c.Clusters, floor.Round(100*time.Millisecond))
	}
	forget, err := o.logChanges(&c)
	if err != nil {
		return bench.Result{}, err
	}
	defer forget()
	result, err := measureOnPlane(ctx, c, func(plane *controlplane.ControlPlane) (bench.Result, error) { return bench.Measure(ctx, plane, c) })
	if err != nil {
		return result, err
	}
	result.Floor = floor
	o.print(result)
	return result, nil
}

// measureForeign runs a case without and with foreign objects.
func (o options) measureForeign(ctx context.Context, c bench.Case) ([]bench.Foreign, error) {
	among := c
	among.Foreign = o.foreign
	var all []bench.Foreign
	if o.processes {
		without, err := measureProcesses(ctx, c)
		if err != nil {
			return nil, err
		}
		with, err := measureProcesses(ctx, among)
		if err != nil {
			return nil, err
		}
		for i := range with {
			all = append(all, bench.ForeignMemory(without[i], with[i], o.foreign))
		}
	} else {
		without, err := o.measureHere(ctx, c)
		if err != nil {
			return nil, err
		}
		with, err := o.measureHere(ctx, among)
		if err != nil {
			return nil, err
		}
		all = append(all, bench.ForeignCounts(without, with, o.foreign))
	}
	var errs []error
	for _, found := range all {
		fmt.Printf("without and with %d foreign ConfigMaps, Secrets and Pods, %s\n", found.Each, found.How)
		for _, c := range found.Found {
			fmt.Println(c)
		}
		errs = append(errs, found.Check())
	}
	return all, errors.Join(errs...)
}

// measureOperations measures what is done to one cluster, so many times, each on a control
// plane of its own.
func (o options) measureOperations(ctx context.Context) error {
	var errs []error
	for range o.operations {
		c := bench.Case{Clusters: 1}
		forget, err := o.logChanges(&c)
		if err != nil {
			return err
		}
		all, err := measureOnPlane(ctx, c, func(plane *controlplane.ControlPlane) ([]bench.Measured, error) {
			return bench.MeasureOperations(ctx, plane, c)
		})
		forget()
		if err != nil {
			return err
		}
		for _, m := range all {
			fmt.Print(m)
			printChanges(m.Changes)
			for _, excess := range bench.Excess(bench.FindOperation(m.Operation), m.Cost) {
				errs = append(errs, fmt.Errorf("%s: %s", m.Operation, excess))
			}
		}
	}
	return errors.Join(errs...)
}

// compareRuns prints the counts of a run beside those of another one.
func compareRuns(file string, run bench.Run) error {
	base, err := bench.LastRun(file)
	if err != nil {
		return err
	}
	all, err := bench.Compare(base, run)
	if err != nil {
		return err
	}
	worse := 0
	fmt.Printf("per cluster, %s -> %s\n", base.Commit, run.Commit)
	for _, c := range all {
		fmt.Println(c)
		if c.Regression {
			worse++
		}
	}
	if worse > 0 {
		return fmt.Errorf("%d counts are more than 10 %% worse than at %s", worse, base.Commit)
	}
	return nil
}

// root is the top of the repository, seen from the folder of this module.
const root = ".."

// describeRun says what is measured, and where.
func describeRun(ctx context.Context, what string) (bench.Run, error) {
	commit, err := document.DescribeCommit(ctx, root)
	if err != nil {
		return bench.Run{}, err
	}
	machine, load, err := bench.Describe()
	return bench.Run{What: what, Commit: commit, Machine: machine, Load: load}, err
}

// measureProcesses runs a case with the operators apart and in one process.
func measureProcesses(ctx context.Context, c bench.Case) ([]bench.Processes, error) {
	var out []bench.Processes
	for _, together := range []bool{false, true} {
		found, err := measureOnPlane(ctx, c, func(plane *controlplane.ControlPlane) (bench.Processes, error) {
			return bench.MeasureProcesses(ctx, plane, c, together)
		})
		if err != nil {
			return nil, err
		}
		fmt.Println(found)
		out = append(out, found)
	}
	return out, nil
}

// measureKinds measures what our kinds cost the API server.
func measureKinds(ctx context.Context, to *bench.Run) error {
	options, err := rig.PlaneOptions()
	if err != nil {
		return err
	}
	found, err := bench.MeasureKindMemory(ctx, options)
	if err != nil {
		return err
	}
	fmt.Println(found)
	to.Kinds = &found
	return nil
}

// measureOnPlane measures something of a case on a control plane of its own.
func measureOnPlane[T any](ctx context.Context, c bench.Case, measure func(*controlplane.ControlPlane) (T, error), controllers ...string) (result T, err error) {
	planeOptions, err := c.Plane()
	if err != nil {
		return result, err
	}
	planeOptions.Controllers = append(planeOptions.Controllers, controllers...)
	plane, err := controlplane.Start(ctx, planeOptions)
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, plane.Stop()) }()
	return measure(plane)
}

func (o options) print(r bench.Result) {
	n := time.Duration(r.Clusters)
	fmt.Printf("%d clusters Ready in %s: per cluster %.1f writes, %.1f reads, %s of processor time\n",
		r.Clusters, r.Took.Round(100*time.Millisecond), float64(r.Start.Writes)/float64(n), float64(r.Start.Reads)/float64(n), (r.Start.Operators() / n).Round(time.Millisecond))
	for _, name := range slices.Sorted(maps.Keys(r.Start.Processor)) {
		fmt.Printf("  %-18s %8s %5d reconciles\n", name, r.Start.Processor[name].Round(time.Millisecond), r.Start.Reconciles[name])
	}
	for _, name := range slices.Sorted(maps.Keys(r.Start.ControlPlane)) {
		fmt.Printf("  %-18s %8s\n", name, r.Start.ControlPlane[name].Round(time.Millisecond))
	}
	printPhase("idle", r.Idle)
	printPhase("restart", r.Restart)
	printPhase("roll", r.Roll)
	if o.requests {
		for _, request := range slices.SortedFunc(maps.Keys(r.Start.Requests), func(a, b rig.Request) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) }) {
			fmt.Printf("%6d × %s %s %s\n", r.Start.Requests[request], request.Operator, request.Verb, request.Resource)
		}
	}
	printChanges(r.Changes)
	for at, f := range r.Start.Functions {
		if at == o.functions {
			break
		}
		fmt.Printf("%10s  %s\n", f.Spent, f.Name)
	}
}

// logChanges has a case log what writes change, if that is asked for. The log goes with forget.
func (o options) logChanges(c *bench.Case) (forget func(), err error) {
	if !o.changes {
		return func() {}, nil
	}
	dir, err := os.MkdirTemp("", "tidb-groups-bench-")
	if err != nil {
		return nil, fmt.Errorf("make a directory for the audit log: %w", err)
	}
	return func() { _ = os.RemoveAll(dir) }, c.LogChanges(dir) // it is the system's to clean up, too
}

// printChanges prints what writes changed, if that was logged.
func printChanges(all map[bench.Change]int) {
	for _, change := range bench.MostOften(all) {
		fmt.Printf("%5d  %-24s %-13s %-20s %s\n", all[change], change.Writer, change.Verb, change.Kind, change.Fields)
	}
}

func printPhase(name string, c *bench.Cost) {
	if c != nil {
		fmt.Printf("  %s, %s: %d writes, %d reads, %d pods replaced, %s of processor time\n", name, c.Took.Round(100*time.Millisecond), c.Writes, c.Reads, c.PodsReplaced, c.Operators().Round(time.Millisecond))
	}
}

// write writes the profiles of a result.
func (o options) write(result bench.Result) error {
	err := o.keep("", result.Start.Profile)
	if result.Idle != nil {
		err = errors.Join(err, o.keep(".idle", result.Idle.Profile))
	}
	return err
}

// keep writes a profile, if profiles are asked for.
func (o options) keep(suffix string, profile []byte) error {
	if o.profile == "" {
		return nil
	}
	if err := os.WriteFile(o.profile+suffix, profile, 0o600); err != nil {
		return fmt.Errorf("write profile: %w", err)
	}
	return nil
}
