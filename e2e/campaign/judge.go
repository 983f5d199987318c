package campaign

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tidb-groups/tidb-groups/e2e/faults"
	"github.com/tidb-groups/tidb-groups/e2e/model"
	"github.com/tidb-groups/tidb-groups/e2e/objects"
	"github.com/tidb-groups/tidb-groups/e2e/scenario"
)

const (
	// bound is how long anything may take to heal: the operators' own deadlines
	// are a minute.
	bound = 100 * time.Second
	// reasonDeadline is how long an operator may say nothing about a change. The 5 s
	// of P11 are for operators that are told of it.
	reasonDeadline = bound
	// relist is how often the operators' caches are filled again, which heals what
	// a lost event has left; by default they are every ten minutes.
	relist = 30 * time.Second
	// relisted is how long that may take: not all are at the same time.
	relisted = relist + relist/2
	// atRest is how long no operator may write for an attempt to be at rest, restTime
	// how long that may take.
	atRest, restTime = 700 * time.Millisecond, 15 * time.Second
)

// run runs the scenario on the stage, judges what comes of it by the undisturbed
// run, and returns what was not as promised. An error is the rig's own.
func (s *stage) run(ctx context.Context, story scenario.Scenario, want *Reference) ([]Finding, error) {
	err := s.play(ctx, story, want)
	if err := errors.Join(ctx.Err(), s.over(ctx)); err != nil {
		return nil, err
	}
	if err == nil {
		err = s.arrive(ctx, want)
	}
	return s.judge(ctx, err, want), nil
}

// play runs the scenario in bounded time.
func (s *stage) play(ctx context.Context, story scenario.Scenario, want *Reference) error {
	ctx, cancel := withRunningTimeout(ctx, bound+want.Took, fmt.Errorf("not within %s more than undisturbed", bound))
	defer cancel()
	_, err := scenario.Run(ctx, s, story)
	return err
}

// arrive waits for the outcome of the undisturbed run.
func (s *stage) arrive(ctx context.Context, want *Reference) error {
	ctx, cancel := withRunningTimeout(ctx, bound, fmt.Errorf("the outcome is not that of the undisturbed run within %s", bound))
	defer cancel()
	_, err := scenario.AwaitOutcome(ctx, s, want.Outcome)
	return err
}

// judge finds what was not as promised, on the way and at the end.
func (s *stage) judge(ctx context.Context, err error, want *Reference) []Finding {
	var out []Finding
	note := func(promise, format string, args ...any) {
		out = append(out, Finding{Promise: promise, What: fmt.Sprintf(format, args...)})
	}
	if err == nil {
		if busy := s.settle(ctx); busy != nil {
			note("P9", "%v", busy)
		}
		err = s.arrive(ctx, want) // it has to stay so
	}
	out = append(out, s.harm()...)
	if err != nil && len(out) == 0 {
		note("P5", "%v", err)
	}
	seen := s.Observed()
	now := scenario.Result{Restarts: scenario.CountRestarts(seen.UIDs), Bootstraps: seen.Bootstraps, Outcome: want.Outcome}
	for _, difference := range now.Differences(want.result()) {
		promise := "P6"
		if strings.HasPrefix(difference, "PD clusters bootstrapped") {
			promise = "P2"
		}
		note(promise, "%s", difference)
	}
	return out
}

// harm is what alarms and violations tell.
func (s *stage) harm() []Finding {
	var out []Finding
	seen := s.Observed()
	for _, alarm := range seen.Alarms {
		promise := "P1"
		if strings.Contains(alarm, string(model.SecondClusterID)) {
			promise = "P2"
		}
		out = append(out, Finding{Promise: promise, What: "alarm: " + alarm})
	}
	for _, violation := range seen.Violations {
		out = append(out, Finding{Promise: findBrokenPromise(violation), What: "violation: " + violation})
	}
	return out
}

// findBrokenPromise returns the promise that a violation breaks.
func findBrokenPromise(violation string) string {
	switch {
	case strings.Contains(violation, "deleted without consent"):
		return "P3"
	case strings.Contains(violation, "one too many"):
		return "P6"
	default:
		return "P11"
	}
}

// settle waits until nothing is written any more.
func (s *stage) settle(ctx context.Context) error {
	limit := restTime
	if s.fault.Kind == faults.Drop {
		// An operator that does not know its own last write tries to repeat it.
		limit += relisted
	}
	ctx, cancel := withRunningTimeout(ctx, limit, nil)
	defer cancel()
	for {
		before := s.Observed()
		if !trySleep(ctx, atRest) {
			return fmt.Errorf("it does not come to rest within %s: %s", limit, strings.Join(s.busy(before), ", "))
		}
		if len(s.busy(before)) == 0 {
			return nil
		}
	}
}

// busy names the writes since a moment, those of Events apart.
func (s *stage) busy(before scenario.Observed) []string {
	var out []string
	for request, n := range s.Requests.Since(before.Requests) {
		if request.Writes() && request.Resource != "events" {
			out = append(out, fmt.Sprintf("%d × %s", n, request))
		}
	}
	return out
}

// describe renders all objects of the suite, for a failure.
func (s *stage) describe() string {
	var out []string
	s.Watcher.Now(func(o objects.Set) {
		for _, key := range o.Keys() {
			out = append(out, objects.Describe(o.Get(key.Kind, key.Name)))
		}
	})
	return strings.Join(out, "\n")
}
