package campaign

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/e2e/faults"
	"github.com/tidb-groups/tidb-groups/e2e/model"
	"github.com/tidb-groups/tidb-groups/e2e/objects"
	"github.com/tidb-groups/tidb-groups/e2e/scenario"
)

// kill makes one attempt: one of the pods that there are is deleted right after a
// write. It comes back, no other member is replaced, and everything else is as in the
// undisturbed run.
func (c *campaign) kill(ctx context.Context, story scenario.Scenario, a Attempt, want *Reference) (Record, error) {
	fault, err := faults.Parse(a.Fault)
	if err != nil {
		return Record{}, err
	}
	story = relaxScenario(story)
	return c.staged(ctx, story, a, fault, func(s *stage) (bool, []Finding, error) {
		killed := ""
		expected := *want
		s.act = func(ctx context.Context) (err error) {
			if killed, err = s.killOne(ctx, a.hash(0)); killed != "" {
				expected = want.without(killed)
			}
			return err
		}
		findings, err := s.run(ctx, story, &expected)
		return s.injector.HasStruck() && killed != "", findings, err
	})
}

// without is the reference when a pod has been replaced once more. The new pod of
// a PD member that has bootstrapped its cluster joins it instead.
func (r Reference) without(pod string) Reference {
	r.Restarts = maps.Clone(r.Restarts)
	if r.Restarts == nil {
		r.Restarts = map[string]int{}
	}
	r.Restarts[pod]++
	r.Outcome = slices.Clone(r.Outcome)
	for i := range r.Outcome {
		if r.Outcome[i].Key == (objects.Key{Kind: "Pod", Name: pod}) {
			r.Outcome[i].Spec = nil
		}
	}
	return r
}

// relaxScenario is a scenario in which a user takes members down himself: majorities
// may be lost, and what is expected at one moment may be so at another.
func relaxScenario(s scenario.Scenario) scenario.Scenario {
	s.Options.Tolerate = append(slices.Clone(s.Options.Tolerate), model.LostPDMajority, model.LostRegionMajority)
	s.Steps = slices.Clone(s.Steps)
	for i, step := range s.Steps {
		if step.Expect != nil {
			expect := scenario.Expect{Bootstraps: step.Expect.Bootstraps, ClaimsKept: step.Expect.ClaimsKept}
			s.Steps[i].Expect = &expect
		}
	}
	return s
}

// killOne deletes a pod, by which chosen of all that there are, and returns its
// name; every other time it gets no time to end.
func (s *stage) killOne(ctx context.Context, which uint64) (string, error) {
	var pods corev1.PodList
	if err := s.User().List(ctx, &pods, client.InNamespace(s.Namespace())); err != nil {
		return "", fmt.Errorf("list pods to kill one: %w", err)
	}
	alive := slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
	if len(alive) == 0 {
		return "", nil
	}
	slices.SortFunc(alive, func(a, b corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	pod := &alive[which%uint64(len(alive))]
	options := []client.DeleteOption{client.Preconditions{UID: ptr.To(pod.UID)}}
	if which/uint64(len(alive))%2 == 1 {
		options = append(options, client.GracePeriodSeconds(0))
	}
	if err := s.User().Delete(ctx, pod, options...); err != nil {
		return "", fmt.Errorf("kill pod %s: %w", pod.Name, err)
	}
	return pod.Name, nil
}
