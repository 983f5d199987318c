package campaign

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

const (
	// rounds are how often the neighbour means harm and means none, in turns, so that what
	// else the machine does falls on both.
	rounds = 5
	// edits are how many edits are timed in each.
	edits = 40
)

// Measured is how long edits of the target waited for their operators.
type Measured struct {
	// Quiet is beside a neighbour that means no harm, and Beside beside one that does.
	Quiet  Waits `json:"quiet"`
	Beside Waits `json:"beside"`
	// SeenQuiet and SeenBeside are for how much of that the API server had not shown the
	// edit: what no operator can help.
	SeenQuiet  Waits `json:"seenQuiet"`
	SeenBeside Waits `json:"seenBeside"`
	// Machine on which it was measured.
	Machine string `json:"machine"`
}

// Waits sums up how long so many edits waited.
type Waits struct {
	Edits  int           `json:"edits"`
	Median time.Duration `json:"median"`
	P99    time.Duration `json:"p99"`
	Most   time.Duration `json:"most"`
}

// summarizeWaits sums up.
func summarizeWaits(all []time.Duration) Waits {
	if len(all) == 0 {
		return Waits{}
	}
	all = slices.Sorted(slices.Values(all))
	at := func(share float64) time.Duration {
		return all[max(0, int(math.Ceil(share*float64(len(all))))-1)]
	}
	return Waits{Edits: len(all), Median: at(0.5), P99: at(0.99), Most: all[len(all)-1]}
}

// turns is the answer of a PD that answers each question in another way.
const turns = "turns"

// listCostlyAnswers are the answers that take time or memory, by name.
func listCostlyAnswers() []string {
	return slices.Concat(sortedKeys(incompleteAnswers()), sortedKeys(excessiveAnswers()))
}

// delayPoints are the attempts of DELAY: each way in which a PD takes time or memory,
// all of its answers in turns, and each deed that goes on.
func delayPoints(name string) []Attempt {
	var out []Attempt
	add := func(who, what string) {
		out = append(out, Attempt{Campaign: Delay, Scenario: name, Fault: "delay:" + who + "/" + what})
	}
	for _, answer := range append(listCostlyAnswers(), turns) {
		add("pd", answer)
	}
	for _, d := range listDeeds() {
		if d.endless {
			add("tenant", d.name)
		}
	}
	return out
}

// delay makes an attempt of DELAY.
func (h *hostiles) delay(ctx context.Context, a Attempt) (Record, error) {
	who, what, _ := strings.Cut(strings.TrimPrefix(a.Fault, "delay:"), "/")
	harm, err := h.harm(who, what)
	if err != nil {
		return Record{}, err
	}
	return h.c.record(ctx, a, func(r *Record) error {
		if err := h.ready(ctx); err != nil {
			return err
		}
		before := h.world.look()
		measured, struck, worked, err := h.world.measure(ctx, harm, func(quiet, beside []edited) {
			if h.c.options.Verbose {
				h.c.print("%s: quiet %v, beside it %v\n", a.Fault, toMilliseconds(answerTimes(quiet)), toMilliseconds(answerTimes(beside)))
			}
		})
		if err == nil {
			r.Struck, r.Measured = struck, &measured
			r.Findings = h.world.judge(ctx, before, worked)
		}
		return h.keep(r.Findings, err)
	})
}

// harm returns what begins to do harm, and returns what ends it and says whether
// anything was done.
func (h *hostiles) harm(who, what string) (func(context.Context, *beside) func(context.Context) (bool, error), error) {
	if who == "pd" {
		given := []answer{listAnswers()[what]}
		if what == turns {
			given = nil
			for _, name := range append(listCostlyAnswers(), sortedKeys(malformedAnswers())...) {
				given = append(given, listAnswers()[name])
			}
		}
		if given[0].give == nil {
			return nil, fmt.Errorf("there is no answer %q of a PD", what)
		}
		return func(_ context.Context, b *beside) func(context.Context) (bool, error) {
			b.front.give(anywhere, given...)
			return func(ctx context.Context) (bool, error) {
				met := b.front.met() > 0
				b.front.give("")
				return met, b.converged(ctx)
			}
		}, nil
	}
	d, err := h.deed(what)
	return func(ctx context.Context, b *beside) func(context.Context) (bool, error) {
		t := b.tenancy()
		doing, stop := context.WithCancel(ctx)
		done := make(chan error, 1)
		go func() { done <- d.do(doing, t) }()
		return func(ctx context.Context) (bool, error) {
			stop()
			return t.taken > 0, errors.Join(<-done, b.cleanUp(ctx))
		}
	}, err
}

// measure times edits of the target beside a neighbour that means no harm, and beside
// one that does, in turns. worked is why an edit had no answer at all.
func (b *beside) measure(ctx context.Context, harm func(context.Context, *beside) func(context.Context) (bool, error), tell func(quiet, beside []edited)) (m Measured, struck bool, worked, err error) {
	var quiet, beside []edited
	// The neighbour's own edits are as many as the target's are quick.
	b.busy = true
	for range rounds {
		if quiet, err = b.time(ctx, quiet); err != nil {
			return m, struck, nil, err // no attacker has acted
		}
		end := harm(ctx, b)
		if beside, err = b.time(ctx, beside); err != nil {
			worked = err
		}
		tell(quiet[len(quiet)-edits:], beside[len(beside)-edits:])
		met, err := end(ctx)
		struck = struck || met
		if worked != nil || err != nil {
			return m, struck, worked, err
		}
	}
	return Measured{
		Quiet: summarizeWaits(answerTimes(quiet)), Beside: summarizeWaits(answerTimes(beside)),
		SeenQuiet: summarizeWaits(seenTimes(quiet)), SeenBeside: summarizeWaits(seenTimes(beside)), Machine: describeMachine(),
	}, struck, nil, nil
}

// time edits the target's objects in turns, while the neighbour edits his, and adds how
// long each took.
func (b *beside) time(ctx context.Context, to []edited) ([]edited, error) {
	mine := b.mine()
	for n := range edits {
		if n%10 == 0 {
			if err := b.touch(ctx, n); err != nil {
				return to, err
			}
		}
		took, err := b.edit(ctx, mine[n%len(mine)])
		if err != nil {
			return to, err
		}
		to = append(to, took)
	}
	return to, nil
}

// answerTimes are how long each edit waited for its operator.
func answerTimes(all []edited) []time.Duration {
	return collectTimes(all, func(e edited) time.Duration { return e.answered })
}

// seenTimes are how long each edit was on its way through the API server.
func seenTimes(all []edited) []time.Duration {
	return collectTimes(all, func(e edited) time.Duration { return e.seen })
}

func collectTimes(all []edited, of func(edited) time.Duration) []time.Duration {
	out := make([]time.Duration, 0, len(all))
	for _, e := range all {
		out = append(out, of(e))
	}
	return out
}

// toMilliseconds are times in milliseconds, for a user.
func toMilliseconds(all []time.Duration) []int64 {
	out := make([]int64, 0, len(all))
	for _, d := range all {
		out = append(out, d.Milliseconds())
	}
	return out
}

// describeMachine names the processors that there are.
func describeMachine() string {
	model := "unknown processor"
	if file, err := os.Open("/proc/cpuinfo"); err == nil {
		defer func() { _ = file.Close() }() // it was only read
		for lines := bufio.NewScanner(file); lines.Scan(); {
			if name, value, found := strings.Cut(lines.Text(), ":"); found && strings.TrimSpace(name) == "model name" {
				model = cmp.Or(strings.TrimSpace(value), model)
				break
			}
		}
	}
	return fmt.Sprintf("%d × %s", runtime.NumCPU(), model)
}
