package campaign

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidb-groups/tidb-groups/e2e/faults"
	"github.com/tidb-groups/tidb-groups/e2e/scenario"
)

// strikes is how long it takes at most until an endpoint is asked: PD is polled every
// 10 s by who expects nothing of it.
const strikes = 14 * time.Second

// hostiles makes the attempts of one worker beside an attacker. A world in
// which something was found, or whose hostile cluster cannot be saved, is given up.
type hostiles struct {
	c     *campaign
	story scenario.Scenario
	want  *Reference
	world *beside
	// schemas of the kinds.
	schemas map[string]*schema
}

// hostilePDPoints are the attempts of HOSTILEPD: every answer anywhere, while the target
// comes up, and every answer at every endpoint, while it is edited.
func hostilePDPoints(name string, asked []Asked) []Attempt {
	var out []Attempt
	all := listAnswers()
	for _, answer := range sortedKeys(all) {
		for _, a := range append([]Asked{{Endpoint: anywhere, JSON: true}}, asked...) {
			if a.JSON || !all[answer].lies {
				out = append(out, Attempt{Campaign: HostilePD, Scenario: name, Fault: "hostilepd:" + a.Endpoint + "/" + answer})
			}
		}
	}
	return out
}

// ready has a world in which the target is up.
func (h *hostiles) ready(ctx context.Context) error {
	if h.world != nil {
		return nil
	}
	var err error
	if h.world, err = h.c.openBeside(ctx, h.story, h.want); err == nil {
		err = h.world.settleTarget(ctx, h.story)
	}
	if err != nil {
		return errors.Join(err, h.close())
	}
	return nil
}

func (h *hostiles) close() error {
	w := h.world
	h.world = nil
	return w.close()
}

// describe prints a world in which something was found, for who asks for more than that.
func (h *hostiles) describe(w *beside, findings []Finding) {
	if len(findings) > 0 && w != nil && h.c.options.Verbose {
		h.c.print("target:\n%s\nhostile:\n%s\n", w.target.Describe(), w.hostile.Describe())
	}
}

// keep gives the world up after an attempt that it may not have survived.
func (h *hostiles) keep(findings []Finding, err error) error {
	h.describe(h.world, findings)
	if len(findings) == 0 && err == nil {
		return nil
	}
	if errors.Is(err, errNotRestored) {
		err = nil
	}
	return errors.Join(err, h.close())
}

// pd makes an attempt of HOSTILEPD.
func (h *hostiles) pd(ctx context.Context, a Attempt) (Record, error) {
	rest := strings.TrimPrefix(a.Fault, "hostilepd:")
	at := strings.LastIndex(rest, "/")
	given, found := listAnswers()[rest[at+1:]]
	if at < 0 || !found {
		return Record{}, fmt.Errorf("read fault %q: want hostilepd:ENDPOINT/ANSWER", a.Fault)
	}
	endpoint := rest[:at]
	return h.c.record(ctx, a, func(r *Record) (err error) {
		if endpoint == anywhere {
			r.Struck, r.Findings, err = h.comesUp(ctx, given)
			return err
		}
		asked := slices.IndexFunc(h.want.Asked, func(a Asked) bool { return a.Endpoint == endpoint })
		if asked < 0 {
			return fmt.Errorf("no operator asks PD for %s", endpoint)
		}
		if err := h.ready(ctx); err != nil {
			return err
		}
		r.Struck, r.Findings, err = h.world.lied(ctx, h.want.Asked[asked], given)
		return h.keep(r.Findings, err)
	})
}

// comesUp has the target come up beside a PD that answers so whatever it is asked.
func (h *hostiles) comesUp(ctx context.Context, given answer) (bool, []Finding, error) {
	w, err := h.c.openBeside(ctx, h.story, h.want)
	if err != nil {
		return false, nil, errors.Join(err, w.close())
	}
	for _, write := range h.want.Writes {
		write.Nth = 0
		w.allowed["write "+strings.TrimSuffix(write.String(), "/0")] = true
	}
	before := w.look()
	w.front.give(anywhere, given)
	if err := listErrands()[0].do(ctx, w); err != nil {
		return false, nil, errors.Join(err, w.close())
	}
	s := &stage{Rig: w.target, fault: faults.Fault{Kind: faults.None}}
	worked := s.play(ctx, h.story, h.want)
	if worked == nil {
		worked = s.arrive(ctx, h.want)
	}
	findings := w.outcome(before, worked)
	met := w.front.met() > 0
	for _, difference := range (scenario.Result{Restarts: scenario.CountRestarts(w.target.Observed().UIDs), Bootstraps: w.target.Observed().Bootstraps, Outcome: h.want.Outcome}).Differences(h.want.result()) {
		findings = append(findings, Finding{Promise: "P12", What: difference})
	}
	h.describe(w, findings)
	return met, findings, errors.Join(ctx.Err(), w.close())
}

// lied has the hostile PD answer so at an endpoint, goes the errand for which the
// operators ask that, edits the target meanwhile, and judges.
func (b *beside) lied(ctx context.Context, asked Asked, given answer) (bool, []Finding, error) {
	all := listErrands()
	at := slices.IndexFunc(all, func(e errand) bool { return e.name == asked.Errand })
	if at < 0 {
		return false, nil, fmt.Errorf("there is no errand %q", asked.Errand)
	}
	e, do := all[at], all[at].do
	if asked.Back {
		if err := errors.Join(e.do(ctx, b), b.converged(ctx)); err != nil {
			return false, nil, fmt.Errorf("errand %s: %w", e.name, err)
		}
		do = func(ctx context.Context, b *beside) error { return e.undo(ctx, b) }
	}
	before := b.look()
	b.front.give(asked.Endpoint, given)
	going, stop := context.WithCancel(ctx)
	defer stop()
	gone := make(chan error, 1)
	go func() { gone <- do(going, b) }() // one that waits for an end may wait for long
	worked := b.workBeside(ctx)
	met := b.front.met() > 0
	findings := b.judge(ctx, before, worked)
	if err := b.touch(ctx, b.round); err != nil {
		return met, findings, err
	}
	findings = append(findings, b.heard(ctx)...)
	b.front.give("")
	if len(findings) > 0 {
		stop()
		<-gone //nolint:errcheck // it was told to end, and ends with just that
		return met, findings, ctx.Err()
	}
	err := b.restore(ctx, e, asked.Back, gone)
	if err == nil {
		findings = b.judge(ctx, b.look(), nil) // nor has anything happened since
	}
	return met, findings, errors.Join(ctx.Err(), err)
}

// workBeside edits the target until the hostile PD has been asked for a while.
func (b *beside) workBeside(ctx context.Context) error {
	begin := time.Now()
	var met time.Time
	for met.IsZero() && time.Since(begin) < strikes || !met.IsZero() && time.Since(met) < besideFor {
		if err := b.work(ctx); err != nil {
			return err
		}
		if met.IsZero() && b.front.met() > 0 {
			met = time.Now()
		}
		if !trySleep(ctx, tick) {
			return context.Cause(ctx)
		}
	}
	return b.scale(ctx)
}
