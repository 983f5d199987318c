package campaign

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/e2e/document"
	"github.com/tidb-groups/tidb-groups/e2e/faults"
	"github.com/tidb-groups/tidb-groups/e2e/scenario"
	"github.com/tidb-groups/tidb-groups/shared/testkit/controlplane"
)

// Options say what is attempted.
type Options struct {
	// Campaigns to run, by name; all that sweep scenarios if empty.
	Campaigns []string
	// Scenarios to run them on.
	Scenarios []string
	// Faults to try instead of the campaigns' own points.
	Faults []string
	// Shard of Shards to run, from 1; all if Shards is less than 2.
	Shard, Shards int
	// Sample is how many attempts of each campaign and scenario to make, all if
	// zero, and Seed which.
	Sample int
	Seed   uint64
	// Parallel is how many attempts are made at once.
	Parallel int
	// References is how many undisturbed runs a reference is made of.
	References int
	// Journal is the file of finished attempts; empty is none.
	Journal string
	// Commit that is tested.
	Commit string
	// CRDs is the directory of the CRDs, for MUTATE.
	CRDs string
	// Next is a program that runs the operators of a next version, for UPGRADE;
	// empty leaves that attempt out.
	Next string
	// Verbose prints every attempt, not only failures.
	Verbose bool
	// Out is where it prints.
	Out io.Writer
}

// campaign is a run of campaigns.
type campaign struct {
	plane   *controlplane.ControlPlane
	options Options
	journal *Journal

	// alone is held by an attempt that measures, and shared by all others.
	alone sync.RWMutex

	mu      sync.Mutex // of what is printed and counted
	records []Record
	total   int
	begin   time.Time
}

// Run makes the attempts and returns their records. An error is a campaign that
// could not be run; attempts that failed are none.
func Run(ctx context.Context, plane *controlplane.ControlPlane, options Options) ([]Record, error) {
	journal, err := OpenJournal(options.Journal)
	if err != nil {
		return nil, err
	}
	c := &campaign{plane: plane, options: options, journal: journal, begin: time.Now()}
	for _, name := range options.Scenarios {
		if err := c.scenario(ctx, name); err != nil {
			return c.records, errors.Join(err, journal.Close())
		}
	}
	return c.records, journal.Close()
}

// scenario runs the campaigns on one scenario.
func (c *campaign) scenario(ctx context.Context, name string) error {
	story, err := scenario.Find(name)
	if err != nil {
		return err
	}
	story = prepareScenario(story)
	want, err := c.reference(ctx, story)
	if err != nil {
		return err
	}
	if want.Asked == nil && c.asksPD() {
		if want.Asked, err = c.asked(ctx, story); err != nil {
			return err
		}
	}
	schemas, err := specSchemas(c.options.CRDs)
	if err != nil {
		return err
	}
	attempts := c.attempts(name, &want, schemas)
	c.print("%s: undisturbed in %s, %d writes, %d events; %d attempts to make\n",
		name, want.Took.Round(time.Millisecond), len(want.Writes), len(want.Events), len(attempts))
	c.total += len(attempts)
	return c.all(ctx, attempts, func() (try, func() error) {
		m := &mutator{c: c, story: story, want: &want, schemas: schemas}
		h := &hostiles{c: c, story: story, want: &want, schemas: schemas}
		return func(ctx context.Context, a Attempt) (Record, error) {
			if a.Campaign == Delay {
				c.alone.Lock()
				defer c.alone.Unlock()
				return h.delay(ctx, a)
			}
			c.alone.RLock()
			defer c.alone.RUnlock()
			switch a.Campaign {
			case HostilePD:
				return h.pd(ctx, a)
			case Tenant:
				return h.tenant(ctx, a)
			case Mutate:
				return m.try(ctx, a)
			case Upgrade:
				return c.upgrade(ctx, story, a, &want)
			case Kill:
				return c.kill(ctx, story, a, &want)
			case Delete:
				return c.remove(ctx, story, a, &want)
			default:
				return c.attempt(ctx, story, a, &want)
			}
		}, func() error { return errors.Join(m.close(), h.close()) }
	})
}

// attempts returns the attempts on a scenario that are asked for and not made
// yet.
func (c *campaign) attempts(name string, want *Reference, schemas map[string]*schema) []Attempt {
	var out []Attempt
	for _, fault := range c.options.Faults {
		out = append(out, Attempt{Campaign: campaignOf(fault), Scenario: name, Fault: fault})
	}
	if len(out) > 0 {
		return out
	}
	for _, campaign := range c.options.Campaigns {
		points := want.points(campaign, name)
		switch campaign {
		case Mutate:
			points = mutationPoints(name, want, schemas)
		case Upgrade:
			points = upgradePoints(name, c.options.Next)
		case HostilePD:
			points = hostilePDPoints(name, want.Asked)
		case Tenant:
			points = tenantPoints(name, schemas)
		case Delay:
			points = delayPoints(name)
		}
		out = append(out, selectAttempts(points, c.options.Shard, c.options.Shards, c.options.Sample, c.options.Seed)...)
	}
	if strings.HasSuffix(c.options.Commit, document.Dirty) {
		return out
	}
	return slices.DeleteFunc(out, func(a Attempt) bool { return c.journal.HasDone(c.options.Commit, a) })
}

// prepareScenario returns a scenario as campaigns run it: in its own namespace, so that
// several can run at once; with a long timeout, for the campaign counts the time; and
// without the pauses in which nothing may happen, for which a campaign waits
// in its own way.
func prepareScenario(s scenario.Scenario) scenario.Scenario {
	s.Options.ClusterWide = false
	s.Timeout = metav1.Duration{Duration: time.Hour}
	s.Steps = slices.DeleteFunc(slices.Clone(s.Steps), func(step scenario.Step) bool { return step.Idle != nil })
	return s
}

// try makes one attempt.
type try func(context.Context, Attempt) (Record, error)

// all makes attempts, several at once, each worker with means of its own.
func (c *campaign) all(ctx context.Context, attempts []Attempt, worker func() (try, func() error)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan Attempt)
	var workers sync.WaitGroup
	for range max(1, c.options.Parallel) {
		workers.Go(func() {
			try, end := worker()
			var err error
			for a := range next {
				var record Record
				if record, err = try(ctx, a); err == nil {
					err = c.finish(record)
				}
				if err != nil {
					break
				}
			}
			if err = errors.Join(err, end()); err != nil {
				cancel(err)
			}
		})
	}
	for _, a := range attempts {
		select {
		case next <- a:
			continue
		case <-ctx.Done():
		}
		break
	}
	close(next)
	workers.Wait()
	return context.Cause(ctx)
}

// attempt makes one attempt.
func (c *campaign) attempt(ctx context.Context, story scenario.Scenario, a Attempt, want *Reference) (Record, error) {
	fault, err := faults.Parse(a.Fault)
	if err != nil {
		return Record{}, err
	}
	return c.staged(ctx, story, a, fault, func(s *stage) (bool, []Finding, error) {
		findings, err := s.run(ctx, story, want)
		return s.injector.HasStruck(), findings, err
	})
}

// staged makes an attempt on a stage of its own. attack says whether it came by
// its point, and what was not as promised.
func (c *campaign) staged(ctx context.Context, story scenario.Scenario, a Attempt, fault faults.Fault, attack func(*stage) (bool, []Finding, error)) (Record, error) {
	return c.record(ctx, a, func(r *Record) error {
		s, err := openStage(ctx, c.plane, story, fault)
		if err != nil {
			return err
		}
		r.Struck, r.Findings, err = attack(s)
		c.show(s, r.Findings)
		return errors.Join(err, s.Close())
	})
}

// record makes the record of an attempt. What keeps an attempt from being made
// stands in it; only the end of the campaign is an error.
func (c *campaign) record(ctx context.Context, a Attempt, attempt func(*Record) error) (Record, error) {
	r := Record{Attempt: a, Commit: c.options.Commit}
	begin := time.Now()
	err := attempt(&r)
	r.Took = time.Since(begin)
	if ctx.Err() != nil {
		return r, context.Cause(ctx)
	}
	if err != nil {
		r.Broken = err.Error()
	}
	return r, nil
}

// show prints the objects of a stage on which something was found.
func (c *campaign) show(s *stage, findings []Finding) {
	if len(findings) > 0 && c.options.Verbose {
		c.print("%s\n", s.describe())
	}
}

// undisturbed makes one run without a fault.
func (c *campaign) undisturbed(ctx context.Context, story scenario.Scenario) (Reference, error) {
	s, err := openStage(ctx, c.plane, story, faults.Fault{})
	if err != nil {
		return Reference{}, err
	}
	timed, cancel := withRunningTimeout(ctx, 2*bound, fmt.Errorf("not within %s", 2*bound))
	defer cancel()
	result, err := scenario.Run(timed, s, story)
	if err == nil {
		err = result.Bad()
	}
	if err == nil {
		err = s.settle(ctx)
	}
	out := Reference{
		Outcome: result.Outcome, Restarts: result.Restarts, Bootstraps: result.Bootstraps,
		Writes: s.injector.Writes(), Events: s.injector.Events(), Took: result.Took,
	}
	if err != nil && c.options.Verbose {
		c.print("%s\nwrites: %s\n", s.describe(), strings.Join(s.busy(scenario.Observed{}), ", "))
	}
	if err == nil {
		// What is true at rest, not what was when the last step was done.
		out.Outcome, err = scenario.AwaitOutcome(ctx, s, nil)
	}
	return out, errors.Join(err, s.Close())
}

// finish keeps a record and prints it if it failed.
func (c *campaign) finish(r Record) error {
	if err := c.journal.Add(r); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.records = append(c.records, r)
	progress := fmt.Sprintf("[%d/%d %s]", len(c.records), c.total, time.Since(c.begin).Round(time.Second))
	switch {
	case r.Broken != "":
		c.say("%s BROKEN %s %s: %s\n", progress, r.Scenario, r.Fault, r.Broken)
	case len(r.Findings) > 0:
		c.say("%s FAILED %s %s in %s\n", progress, r.Scenario, r.Fault, r.Took.Round(time.Millisecond))
		for _, f := range r.Findings {
			c.say("    %s\n", f)
		}
		c.say("    again: %s\n", r.Replay())
	case c.options.Verbose:
		result := "ok"
		if !r.Struck {
			result = "not met"
		}
		c.say("%s %s %s %s in %s\n", progress, result, r.Scenario, r.Fault, r.Took.Round(time.Millisecond))
	}
	return nil
}

func (c *campaign) print(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.say(format, args...)
}

// say prints for a user; a terminal that is gone is no loss.
func (c *campaign) say(format string, args ...any) {
	_, _ = fmt.Fprintf(c.options.Out, format, args...)
}
