// Command rig runs the scenarios of the suite: all operators in this process, a
// real kube-apiserver and etcd, the pod actor and the database model. It says
// per scenario what was made, asked and replaced, and fails on any alarm.
//
//	rig                       every scenario, those with many orders in a sample
//	rig scale-out bootstrap   these
//	rig -all                  every order
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/tidb-groups/tidb-groups/e2e/rig"
	"github.com/tidb-groups/tidb-groups/e2e/scenario"
	"github.com/tidb-groups/tidb-groups/shared/testkit/controlplane"
)

func main() { os.Exit(run()) }

// options are the command line.
type options struct {
	all      bool
	list     bool
	requests bool
	errors   bool
	remedies bool
	parallel int
	speed    bool
	names    []string
}

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var o options
	flag.BoolVar(&o.all, "all", false, "run every order of the scenarios that have many, not a sample")
	flag.BoolVar(&o.list, "list", false, "print the scenarios and what they show, and end")
	flag.BoolVar(&o.requests, "requests", false, "print every kind of request")
	flag.BoolVar(&o.errors, "errors", false, "print the errors that operators log")
	flag.BoolVar(&o.remedies, "remedies", false, "print every message of a status with a command to paste")
	flag.IntVar(&o.parallel, "parallel", 4, "how many scenarios run at the same time")
	flag.BoolVar(&o.speed, "speed", false, "measure how long the operators themselves take, instead of running scenarios")
	flag.Usage = func() {
		_, _ = fmt.Fprintln(flag.CommandLine.Output(), "usage: rig [flags] [scenario...]")
		flag.PrintDefaults()
	}
	flag.Parse()
	o.names = flag.Args()
	if err := o.do(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "rig: FAILED:", err)
		return 1
	}
	return 0
}

func (o options) do(ctx context.Context) error {
	selected, err := o.scenarios()
	if err != nil {
		return err
	}
	if o.list {
		for _, s := range selected {
			fmt.Printf("%-36s %s\n", s.Name, s.Shows)
		}
		return nil
	}
	var loud io.Writer
	if o.errors {
		loud = os.Stdout
	}
	journal := rig.NewJournal(loud)
	return withPlane(ctx, func(plane *controlplane.ControlPlane) error {
		if o.speed {
			return measureSpeed(ctx, plane)
		}
		failed := o.runAll(ctx, plane, selected)
		for _, p := range journal.Panics() {
			failed = append(failed, "an operator panicked: "+p)
		}
		return joinFailures(failed)
	})
}

// withPlane runs something on a control plane of its own.
func withPlane(ctx context.Context, do func(*controlplane.ControlPlane) error) error {
	planeOptions, err := rig.PlaneOptions()
	if err != nil {
		return err
	}
	began := time.Now()
	plane, err := controlplane.Start(ctx, planeOptions)
	if err != nil {
		return err
	}
	fmt.Printf("control plane up after %s\n", time.Since(began).Round(100*time.Millisecond))
	return errors.Join(do(plane), plane.Stop())
}

// scenarios returns what is to run.
func (o options) scenarios() ([]scenario.Scenario, error) {
	if len(o.names) == 0 {
		families, err := scenario.Load()
		if err != nil {
			return nil, err
		}
		return o.variants(families), nil
	}
	var families []scenario.Scenario
	for _, name := range o.names {
		s, err := scenario.Find(name)
		if err != nil {
			return nil, err
		}
		families = append(families, s)
	}
	return o.variants(families), nil
}

func (o options) variants(families []scenario.Scenario) []scenario.Scenario {
	var out []scenario.Scenario
	for _, s := range families {
		if s.RunsIn(scenario.Rig) {
			out = append(out, s.Variants(o.all && !o.list)...)
		}
	}
	return out
}
