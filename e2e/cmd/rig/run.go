package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tidb-groups/tidb-groups/e2e/rig"
	"github.com/tidb-groups/tidb-groups/e2e/scenario"
	"github.com/tidb-groups/tidb-groups/shared/testkit/controlplane"
)

// tally is what all scenarios add up to.
type tally struct {
	mu                       sync.Mutex
	ran, alarms, violations  int
	requests, objects, again int
	failed                   []string
	kubectl                  *rig.Kubectl
}

// runAll runs scenarios, those that watch all namespaces one after the other,
// and returns the names of those that failed.
func (o options) runAll(ctx context.Context, plane *controlplane.ControlPlane, all []scenario.Scenario) []string {
	began := time.Now()
	sum := &tally{kubectl: rig.NewKubectl()}
	var together errgroup.Group
	together.SetLimit(max(1, o.parallel))
	for _, wide := range []bool{true, false} {
		for _, s := range all {
			switch {
			case s.Options.ClusterWide != wide:
			case wide:
				o.runOne(ctx, plane, s, sum)
			default:
				together.Go(func() error {
					o.runOne(ctx, plane, s, sum)
					return nil
				})
			}
		}
	}
	_ = together.Wait() // failures are in the tally
	fmt.Printf("\n%d scenarios in %s: %d objects, %d requests, %d pods replaced, %d alarms, %d violations, %d failed\n",
		sum.ran, time.Since(began).Round(time.Second), sum.objects, sum.requests, sum.again, sum.alarms, sum.violations, len(sum.failed))
	return sum.failed
}

// runOne runs a scenario in a rig of its own and prints what came of it.
func (o options) runOne(ctx context.Context, plane *controlplane.ControlPlane, s scenario.Scenario, sum *tally) {
	if ctx.Err() != nil {
		return
	}
	result, err := runInRig(ctx, plane, s, sum.kubectl)
	sum.mu.Lock()
	defer sum.mu.Unlock()
	requests, replaced := 0, 0
	for _, n := range result.Requests {
		requests += n
	}
	for _, n := range result.Restarts {
		replaced += n
	}
	sum.ran++
	sum.objects, sum.requests, sum.again = sum.objects+len(result.Outcome), sum.requests+requests, sum.again+replaced
	sum.alarms, sum.violations = sum.alarms+len(result.Alarms), sum.violations+len(result.Violations)
	word := "ok    "
	if err = errors.Join(err, result.Bad()); err != nil {
		word = "FAILED"
		sum.failed = append(sum.failed, s.Name)
	}
	fmt.Printf("%s %-36s %3d objects, requests: %s; %d pods replaced, %d alarms, %s\n",
		word, s.Name, len(result.Outcome), scenario.ByVerb(result.Requests), replaced, len(result.Alarms), result.Took.Round(100*time.Millisecond))
	if err != nil {
		fmt.Printf("       %s\n       again: make rig RIG='%s'\n", strings.ReplaceAll(shortenError(err), "\n", "\n       "), s.Name)
	}
	if o.remedies {
		for _, message := range result.Tried {
			fmt.Printf("       tells: %s\n", message)
		}
		for _, message := range result.Pasted {
			fmt.Printf("       pasted: %s\n", message)
		}
	}
	if o.requests {
		printRequests(result.Requests)
	}
}

func printRequests(counts map[scenario.Request]int) {
	for _, request := range slices.SortedFunc(maps.Keys(counts), func(a, b scenario.Request) int { return strings.Compare(a.String(), b.String()) }) {
		fmt.Printf("       %4d × %s\n", counts[request], request)
	}
}

// runInRig opens a rig for a scenario and closes it again.
func runInRig(ctx context.Context, plane *controlplane.ControlPlane, s scenario.Scenario, kubectl *rig.Kubectl) (scenario.Result, error) {
	r, err := rig.Open(ctx, plane, rig.Options{Remedies: kubectl}.For(s))
	if err != nil {
		return scenario.Result{Scenario: s.Name}, err
	}
	result, err := scenario.Run(ctx, r, s)
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, r.Describe())
	}
	if err == nil {
		err = result.Unproved()
	}
	return result, errors.Join(err, r.Close())
}

// shortenError cuts what is repeated a hundred times.
func shortenError(err error) string {
	const lines = 60
	all := strings.Split(err.Error(), "\n")
	if len(all) > lines {
		all = append(all[:lines], fmt.Sprintf("… and %d lines more", len(all)-lines))
	}
	return strings.Join(all, "\n")
}

// joinFailures is the error that the command ends with.
func joinFailures(failed []string) error {
	if len(failed) == 0 {
		fmt.Println("rig: all passed, no alarm")
		return nil
	}
	return errors.New(strings.Join(failed, ", "))
}
