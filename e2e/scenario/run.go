package scenario

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/e2e/objects"
	"github.com/tidb-groups/tidb-groups/e2e/remedy"
	"github.com/tidb-groups/tidb-groups/e2e/workload"
	"github.com/tidb-groups/tidb-groups/shared/testkit/pki"
)

// defaultTimeout is how long what must come may take where neither step nor scenario
// says, on a machine that does much else.
const defaultTimeout = 3 * time.Minute

// request bounds a single request to the API server.
const request = 30 * time.Second

// runner is a scenario on its way through a world.
type runner struct {
	world    World
	scenario Scenario
	// deleted are the UIDs of what the scenario has deleted last by each name.
	deleted map[objects.Key]types.UID
	// nodes are the nodes that steps have named, by the pod they were named after.
	nodes map[string]string
	// authorities have signed the certificates of the scenario, by name.
	authorities map[string]*pki.CA
	// workload that runs; nil if none does.
	workload *workload.Run
	// reported is what a workload has reported at its end.
	reported *workload.Report
	// proof is the commands that it is the evidence of.
	proof remedy.Proof
	// pasted are the messages whose commands were pasted.
	pasted []string
	// needed are the names of the scenario's operators.
	needed []string
	// clusterWide are objects outside the namespace, which have to be removed.
	clusterWide []*unstructured.Unstructured
}

// Run starts the operators, carries the steps out one after the other and
// returns what has come of it, also when a step fails: then with an error that
// names the step. Alarms and violations end a wait, but are no error: see
// [Result.Bad].
func Run(ctx context.Context, w World, s Scenario) (result Result, err error) {
	r := &runner{world: w, scenario: s, deleted: map[objects.Key]types.UID{}, nodes: map[string]string{}, authorities: map[string]*pki.CA{}}
	begin := time.Now()
	defer func() { err = errors.Join(err, r.tidy(ctx)) }()
	if r.proof, err = remedy.ProofOf(s.Name); err != nil {
		return Result{Scenario: s.Name}, fmt.Errorf("run scenario %s: %w", s.Name, err)
	}
	if !s.RunsIn(w.Kind()) {
		return Result{Scenario: s.Name}, fmt.Errorf("run scenario %s: it does not run in the world %q", s.Name, w.Kind())
	}
	if r.needed, err = s.Needed(); err != nil {
		return Result{Scenario: s.Name}, err
	}
	absent := r.operators(s.Options.Absent)
	err = w.StartOperators(ctx, slices.DeleteFunc(slices.Clone(r.needed), func(name string) bool { return slices.Contains(absent, name) })...)
	if err == nil {
		err = r.steps(ctx, "scenario "+s.Name, s.Steps)
	}
	if r.workload != nil {
		if ended := r.endWorkload(ctx); ended != nil {
			err = errors.Join(err, fmt.Errorf("scenario %s: %w", s.Name, ended))
		}
	}
	seen := w.Observed()
	result = Result{
		Scenario: s.Name, Took: time.Since(begin),
		Restarts: CountRestarts(seen.UIDs), Bootstraps: seen.Bootstraps, Alarms: seen.Alarms, Violations: seen.Violations, Requests: seen.Requests,
		Workload: r.reported, Tried: seen.Tried, Pasted: r.pasted,
	}
	if err == nil {
		result.Outcome, err = AwaitOutcome(ctx, w, nil)
	}
	return result, err
}

// AwaitOutcome waits until the outcome is as wanted, whatever it is if want is
// nil, and returns what it is at last.
func AwaitOutcome(ctx context.Context, w World, want []Object) ([]Object, error) {
	var last []Object
	err := w.Await(ctx, func(o objects.Set) (err error) {
		if last, err = Outcome(o, w.Namespace()); err != nil || want == nil {
			return err
		}
		if differences := Compare(last, want); len(differences) > 0 {
			return errors.New(strings.Join(differences, "; "))
		}
		return nil
	})
	return last, err
}

// tidy removes what the scenario has left outside its namespace.
func (r *runner) tidy(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), request)
	defer cancel()
	for _, object := range r.clusterWide {
		if err := client.IgnoreNotFound(r.world.User().Delete(ctx, object)); err != nil {
			return fmt.Errorf("remove %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

// operators resolves a list of operators.
func (r *runner) operators(names []string) []string {
	if slices.Contains(names, All) {
		return r.needed
	}
	return names
}

// steps carries steps out until one fails.
func (r *runner) steps(ctx context.Context, of string, steps []Step) error {
	for i, step := range steps {
		if err := r.step(ctx, step); err != nil {
			return fmt.Errorf("%s: step %d, %s: %w", of, i+1, step, err)
		}
	}
	return nil
}

func (r *runner) step(ctx context.Context, s Step) error {
	switch {
	case s.Apply != nil:
		return r.apply(ctx, s.Apply)
	case s.Patch != nil:
		return r.patch(ctx, *s.Patch)
	case s.Scale != nil:
		return r.scale(ctx, *s.Scale)
	case s.Refuse != nil:
		return r.refuse(ctx, *s.Refuse)
	case s.Delete != nil:
		return r.delete(ctx, s.Delete.Object, s.Delete.Cascade)
	case s.DeletePod != nil:
		return r.deleteAll(ctx, kindPod, s.DeletePod)
	case s.ForceDeletePod != nil:
		return r.deleteAll(ctx, kindPod, s.ForceDeletePod, client.GracePeriodSeconds(0))
	case s.DeleteClaim != nil:
		r.consent(s.DeleteClaim)
		return r.deleteAll(ctx, kindClaim, s.DeleteClaim)
	case s.Consent != nil:
		r.consent(s.Consent)
		return nil
	case s.Certificate != nil:
		return r.certify(ctx, *s.Certificate)
	case s.Paste != nil:
		return r.paste(ctx, *s.Paste)
	case s.Start != nil:
		return r.world.StartOperators(ctx, r.operators(s.Start)...)
	case s.Stop != nil:
		return r.world.StopOperators(ctx, r.operators(s.Stop)...)
	case s.Restart != nil:
		if err := r.world.StopOperators(ctx, r.operators(s.Restart)...); err != nil {
			return err
		}
		return r.world.StartOperators(ctx, r.operators(s.Restart)...)
	case s.Await != nil:
		return r.await(ctx, *s.Await)
	case s.Expect != nil:
		return r.expect(ctx, *s.Expect)
	case s.Idle != nil:
		return r.idle(ctx, s.Idle.Duration)
	case s.Crash != nil:
		return r.crash(ctx, *s.Crash)
	case s.WipeData != nil:
		return r.world.WipeData(ctx, s.WipeData)
	case s.SQL != nil:
		return r.query(ctx, *s.SQL)
	case s.Workload != nil:
		return r.workloadStep(ctx, *s.Workload)
	case s.Operation != nil:
		return r.operation(ctx, *s.Operation)
	case s.Replicate != nil:
		return r.world.Replicate(ctx, s.Replicate.PDGroup, s.Replicate.Table, s.Replicate.Replicas)
	case s.Permute != nil:
		return errors.New("take one of the scenario's variants")
	default:
		return r.nodeStep(ctx, s)
	}
}

func (r *runner) crash(ctx context.Context, c Crash) error {
	pod, err := r.fill(ctx, []byte(c.Pod))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, r.scenario.within(0))
	defer cancel()
	return r.world.Crash(ctx, string(pod), max(1, c.Times)*signOf(c.Times))
}

// query runs a statement and looks at what it says.
func (r *runner) query(ctx context.Context, q SQL) error {
	if q.Same != nil {
		same := *q.Same
		same.Is = new(string)
		said, err := r.ask(ctx, same)
		if err != nil {
			return fmt.Errorf("run %s: %w", same.Run, err)
		}
		q.Is = &said
	}
	answer, err := r.ask(ctx, q)
	switch {
	case q.Fails != "" && err == nil:
		return fmt.Errorf("%s did not fail", q.Run)
	case q.Fails != "" && strings.Contains(err.Error(), q.Fails):
		return nil
	case err != nil:
		return fmt.Errorf("run %s: %w", q.Run, err)
	case q.Is != nil && answer != *q.Is:
		return fmt.Errorf("%s says %q, %q is expected", q.Run, answer, *q.Is)
	}
	return nil
}

// ask runs a statement with the fields that it reads.
func (r *runner) ask(ctx context.Context, q SQL) (string, error) {
	for _, text := range []*string{&q.Run, &q.Snapshot} {
		filled, err := r.fill(ctx, []byte(*text))
		if err != nil {
			return "", err
		}
		*text = string(filled)
	}
	return r.world.Query(ctx, q)
}

func signOf(n int) int {
	if n < 0 {
		return -1
	}
	return 1
}

// await waits for what must come.
func (r *runner) await(ctx context.Context, a Await) error {
	within := r.scenario.within(a.Within.Duration)
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("not within %s", within))
	defer cancel()
	proves := false
	holds := func(o objects.Set) error {
		proves = slices.ContainsFunc(a.Says, func(s Says) bool { return r.proof.Covers(s.message(o)) })
		return a.Holds.check(o, r.deleted)
	}
	if err := r.world.Await(ctx, holds); err != nil {
		return err
	}
	if proves {
		r.world.Observed() // which ends when the commands that stand have been tried
	}
	if a.Replicated || len(a.pods()) > 0 {
		if err := pollDatabase(ctx, func(ctx context.Context) error { return a.placed(ctx, r.world) }); err != nil {
			return err
		}
	}
	if len(a.Folders) > 0 {
		if err := pollDatabase(ctx, func(ctx context.Context) error { return a.stored(ctx, r.world) }); err != nil {
			return err
		}
	}
	if len(a.Shows) > 0 {
		if err := pollDatabase(ctx, func(ctx context.Context) error { return r.shows(ctx, a.Shows) }); err != nil {
			return err
		}
	}
	if len(a.Settings) == 0 {
		return nil
	}
	if err := pollDatabase(ctx, func(ctx context.Context) error { return r.settings(ctx, a.Settings) }); err != nil {
		return err
	}
	// A change may not have been seen yet when the objects were looked at: members have
	// its settings only when it has.
	return r.world.Await(ctx, holds)
}

// settings is content when members run with some values.
func (r *runner) settings(ctx context.Context, wanted map[string]map[string]string) error {
	for pod, values := range wanted {
		for key, want := range values {
			if have, err := r.world.Setting(ctx, pod, key); err != nil || have != want {
				return errors.Join(err, fmt.Errorf("%s of pod %s is %q, %q is expected", key, pod, have, want))
			}
		}
	}
	return nil
}

// pollDatabase waits for something in the database, which does not tell when it is so.
func pollDatabase(ctx context.Context, so func(context.Context) error) error {
	ticker := time.NewTicker(again)
	defer ticker.Stop()
	for {
		err := so(ctx)
		if err == nil || errors.Is(err, ErrNotHere) {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		}
	}
}

// expect looks once.
func (r *runner) expect(ctx context.Context, e Expect) error {
	seen := r.world.Observed()
	var last error
	look := func(o objects.Set) error {
		last = errors.Join(e.Holds.check(o, r.deleted), r.claimsKept(e, o, seen))
		return nil
	}
	if err := r.world.Await(ctx, look); err != nil {
		return err
	}
	if e.Restarts != nil {
		differences := Result{Restarts: CountRestarts(seen.UIDs)}.Differences(Result{Restarts: *e.Restarts})
		for _, difference := range differences {
			last = errors.Join(last, errors.New(strings.ReplaceAll(difference, "undisturbed", "expected")))
		}
	}
	for prefix, want := range e.Replacements {
		if have := countReplacements(seen.UIDs, prefix); have != want {
			last = errors.Join(last, fmt.Errorf("pods %s* were replaced %d times, not %d", prefix, have, want))
		}
	}
	if e.Flushed != nil && !maps.Equal(seen.Flushed, *e.Flushed) {
		last = errors.Join(last, fmt.Errorf("stores ended with their log backups written out %v times, not %v", seen.Flushed, *e.Flushed))
	}
	if e.Led != nil {
		if !maps.Equal(seen.Led, *e.Led) {
			last = errors.Join(last, fmt.Errorf("stores, or members of PD, ended while they led %v times, not %v", seen.Led, *e.Led))
		}
		if len(seen.Evicting) > 0 {
			last = errors.Join(last, fmt.Errorf("PD keeps leaders from %v", seen.Evicting))
		}
	}
	if e.Held != nil && !slices.Equal(seen.Held, *e.Held) {
		last = errors.Join(last, fmt.Errorf("PD holds old data back for %v, not for %v", seen.Held, *e.Held))
	}
	if e.Bootstraps != nil {
		bootstraps := 0
		for _, n := range seen.Bootstraps {
			bootstraps += n
		}
		if bootstraps != *e.Bootstraps {
			last = errors.Join(last, fmt.Errorf("%d PD clusters were bootstrapped, not %d", bootstraps, *e.Bootstraps))
		}
	}
	if e.Upgrades != nil {
		last = errors.Join(last, checkUpgrades(seen, *e.Upgrades))
	}
	return last
}

// checkUpgrades looks at what TiDB was told of upgrades.
func checkUpgrades(seen Observed, want int) error {
	var errs []error
	ended := 0
	for group, told := range seen.Upgrades {
		ended += told.Ended
		for _, wrong := range told.Wrong {
			errs = append(errs, fmt.Errorf("TiDB of PDGroup %s: %s", group, wrong))
		}
		if told.Open {
			errs = append(errs, fmt.Errorf("TiDB of PDGroup %s was not told that the upgrade is over", group))
		}
	}
	if ended != want {
		errs = append(errs, fmt.Errorf("TiDB was told of %d upgrades, not of %d", ended, want))
	}
	return errors.Join(errs...)
}

// claimsKept looks for every claim that ever was.
func (r *runner) claimsKept(e Expect, o objects.Set, seen Observed) error {
	if !e.ClaimsKept {
		return nil
	}
	for key, uids := range seen.UIDs {
		if _, meant := r.deleted[key]; meant || key.Kind != kindClaim {
			continue
		}
		claim := o.Get(key.Kind, key.Name)
		if claim == nil || claim.GetDeletionTimestamp() != nil || len(uids) != 1 {
			return fmt.Errorf("claim %s was not kept, it has been %v", key.Name, uids)
		}
	}
	return nil
}
