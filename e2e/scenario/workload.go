package scenario

import (
	"context"
	"errors"
	"fmt"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/e2e/workload"
)

// validateWorkloads is content when workloads and operations are in an order that can be
// carried out.
func validateWorkloads(steps []Step) error {
	began, runs := false, false
	for i, step := range steps {
		var err error
		switch w, o := step.Workload, step.Operation; {
		case w != nil:
			err = w.validate(began, runs)
			began, runs = true, !w.End
		case o != nil && !runs:
			err = fmt.Errorf("operation %s needs a workload, and none runs", o.Name)
		case o != nil:
			err = o.validate()
		}
		if err != nil {
			return fmt.Errorf("step %d: %w", i+1, err)
		}
	}
	return nil
}

func (w Workload) validate(began, runs bool) error {
	switch {
	case w.End && w != Workload{End: true}:
		return errors.New("a workload step that ends one says nothing else")
	case w.End && !runs:
		return errors.New("no workload runs that could end")
	case !w.End && w.TiDBGroup == "":
		return errors.New("a workload step has a tidbGroup, or end")
	case !w.End && began:
		return errors.New("a scenario has one workload")
	}
	return nil
}

func (o Operation) validate() error {
	if o.Name == "" || len(o.Steps) == 0 {
		return errors.New("an operation has a name and steps")
	}
	for i, step := range o.Steps {
		if step.Workload != nil || step.Operation != nil || step.Permute != nil {
			return fmt.Errorf("operation %s: step %d, %v, cannot be part of an operation", o.Name, i+1, step.verbs())
		}
	}
	return nil
}

func (r *runner) workloadStep(ctx context.Context, w Workload) (err error) {
	if w.End {
		return r.endWorkload(ctx)
	}
	ctx, cancel := r.withTimeout(ctx)
	defer cancel()
	login := func(ctx context.Context) (workload.Login, error) { return r.world.Login(ctx, w.Login) }
	if _, err := login(ctx); errors.Is(err, ErrNotHere) {
		return err
	}
	r.workload, err = workload.Start(ctx, workload.Config{Login: login, Split: w.Split})
	return err
}

// withTimeout returns a context that ends when the scenario's timeout has passed.
func (r *runner) withTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	within := r.scenario.within(0)
	return context.WithTimeoutCause(ctx, within, fmt.Errorf("not within %s", within))
}

// endWorkload ends the workload that runs, with the Events that were seen meanwhile as marks.
func (r *runner) endWorkload(ctx context.Context) error {
	ctx, cancel := r.withTimeout(context.WithoutCancel(ctx))
	defer cancel()
	marks, err := r.marks(ctx)
	r.workload.Mark(marks...)
	report, failed := r.workload.Finish(ctx)
	r.workload, r.reported = nil, &report
	if err = errors.Join(err, failed, report.Bad()); err != nil {
		return fmt.Errorf("workload: %w", err)
	}
	return nil
}

// operation carries steps out under the workload, and judges what that has cost.
func (r *runner) operation(ctx context.Context, o Operation) error {
	span := r.workload.Begin(o.Name)
	err := r.steps(ctx, "operation "+o.Name, o.Steps)
	if err != nil {
		return err
	}
	ctx, cancel := r.withTimeout(ctx)
	defer cancel()
	seen, err := span.End(ctx)
	if err != nil {
		return err
	}
	return o.judge(seen)
}

// judge says what has cost more than it may.
func (o Operation) judge(seen workload.Operation) error {
	var errs []error
	if seen.Findings > 0 {
		errs = append(errs, fmt.Errorf("the workload has found %d things wrong, %d lost rows among them", seen.Findings, seen.Lost))
	}
	if o.Failed != nil && seen.Failed > *o.Failed {
		errs = append(errs, fmt.Errorf("%d statements failed, not %d", seen.Failed, *o.Failed))
	}
	if o.FailedLong != nil && seen.FailedLong > *o.FailedLong {
		errs = append(errs, fmt.Errorf("%d statements failed on long connections, not %d", seen.FailedLong, *o.FailedLong))
	}
	if seen.FailedLong < o.FailedLongAtLeast {
		errs = append(errs, fmt.Errorf("%d statements failed on long connections, and not at least %d", seen.FailedLong, o.FailedLongAtLeast))
	}
	if o.Pause != nil && seen.Pause.Duration > o.Pause.Duration {
		errs = append(errs, fmt.Errorf("a session paused for %s, not %s", seen.Pause.Duration.Round(time.Millisecond), o.Pause.Duration))
	}
	return errors.Join(errs...)
}

// marks are the Events of the suite's objects.
func (r *runner) marks(ctx context.Context) ([]workload.Mark, error) {
	var all eventsv1.EventList
	if err := r.world.User().List(ctx, &all, client.InNamespace(r.world.Namespace())); err != nil {
		return nil, fmt.Errorf("list Events: %w", err)
	}
	var out []workload.Mark
	for _, e := range all.Items {
		if e.Regarding.GroupVersionKind().Group != v1alpha1.GroupName {
			continue
		}
		mark := workload.Mark{At: e.EventTime.Time, Row: e.Reason, Text: e.Regarding.Kind + " " + e.Regarding.Name + ": " + e.Note}
		out = append(out, mark)
		if e.Series != nil {
			mark.At = e.Series.LastObservedTime.Time
			out = append(out, mark)
		}
	}
	return out, nil
}
