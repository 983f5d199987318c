package campaign

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/e2e/faults"
	"github.com/tidb-groups/tidb-groups/e2e/scenario"
)

// errRemoved ends the scenario in which everything has been deleted.
var errRemoved = errors.New("everything was deleted")

// remove makes one attempt: right after a write a user deletes everything, in an
// order that the attempt decides. All has to go in bounded time, except the claims,
// none of which may be touched.
func (c *campaign) remove(ctx context.Context, story scenario.Scenario, a Attempt, want *Reference) (Record, error) {
	fault, err := faults.Parse(a.Fault)
	if err != nil {
		return Record{}, err
	}
	story = relaxScenario(story)
	way := wayOf(a.hash(0))
	return c.staged(ctx, story, a, fault, func(s *stage) (bool, []Finding, error) {
		playing, stop := context.WithCancelCause(ctx)
		defer stop(nil)
		s.act = func(ctx context.Context) error {
			defer stop(errRemoved)
			return s.removeAll(ctx, way)
		}
		err := s.play(playing, story, want)
		if err == nil {
			err = s.settle(playing) // its last writes are points as well
		}
		if !s.injector.HasStruck() {
			return false, nil, err
		}
		if err := errors.Join(ctx.Err(), s.over(ctx)); err != nil {
			return true, nil, err
		}
		// What the user has applied while he deleted.
		if err := s.removeAll(ctx, way); err != nil {
			return true, nil, err
		}
		return true, s.removed(ctx), nil
	})
}

// way is how a user deletes everything.
type way struct {
	// kinds in their order.
	kinds []string
	// cascade of each deletion.
	cascade metav1.DeletionPropagation
}

// wayOf returns one of the ways.
func wayOf(which uint64) way {
	dice := rand.New(rand.NewPCG(which, 0)) //nolint:gosec // chosen by the attempt, not by chance
	w := way{kinds: append(v1alpha1.ClusterKinds(), "Pod"), cascade: metav1.DeletePropagationBackground}
	dice.Shuffle(len(w.kinds), func(i, j int) { w.kinds[i], w.kinds[j] = w.kinds[j], w.kinds[i] })
	if dice.IntN(2) == 1 {
		w.cascade = metav1.DeletePropagationForeground
	}
	return w
}

// removeAll deletes all objects of the suite's kinds and their pods, one after the
// other, and does not wait for any to go.
func (s *stage) removeAll(ctx context.Context, w way) error {
	for _, kind := range w.kinds {
		version := v1alpha1.GroupVersion()
		if kind == "Pod" {
			version = corev1.SchemeGroupVersion
		}
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(version.WithKind(kind + "List"))
		if err := s.User().List(ctx, list, client.InNamespace(s.Namespace())); err != nil {
			return fmt.Errorf("list every %s to delete it: %w", kind, err)
		}
		for i := range list.Items {
			if err := s.User().Delete(ctx, &list.Items[i], client.PropagationPolicy(w.cascade)); client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("delete %s %s: %w", kind, list.Items[i].GetName(), err)
			}
		}
	}
	return nil
}

// removed waits until everything is gone that is to go, and finds what was not as
// promised.
func (s *stage) removed(ctx context.Context) []Finding {
	var out []Finding
	note := func(promise string, err error) {
		if err != nil {
			out = append(out, Finding{Promise: promise, What: err.Error()})
		}
	}
	look := func(step scenario.Step) error {
		ctx, cancel := withRunningTimeout(ctx, bound, fmt.Errorf("not within %s", bound))
		defer cancel()
		_, err := scenario.Run(ctx, s, prepareScenario(scenario.Scenario{Name: "removed", Steps: []scenario.Step{step}}))
		return err
	}
	gone := look(scenario.Step{Await: &scenario.Await{Holds: scenario.Holds{OnlyClaims: true}}})
	if gone == nil {
		note("P9", s.settle(ctx))
	}
	out = append(out, s.harm()...)
	if len(out) == 0 {
		note("P8", gone)
		note("P3", look(scenario.Step{Expect: &scenario.Expect{ClaimsKept: true}}))
	}
	return out
}
