package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/e2e/objects"
	"github.com/tidb-groups/tidb-groups/e2e/rig"
	"github.com/tidb-groups/tidb-groups/e2e/scenario"
	"github.com/tidb-groups/tidb-groups/shared/testkit/controlplane"
)

const (
	// rolled is the scenario whose roll is measured: it begins at the step rollAt.
	rolled, rollAt = "tikv-roll", 2
	// sampleEvery is how often it is looked at what a roll waits for.
	sampleEvery = 5 * time.Millisecond
	// deletions is how many TiDB pods are deleted, one after the other.
	deletions = 20
	// tidbPod is the only TiDB of that scenario.
	tidbPod = "c-0"
)

// The phases of a roll.
const (
	phaseEviction = "leaders leave"
	phaseRestart  = "pods restart"
	phaseReturn   = "leaders return"
	phaseOperator = "operators"
)

// measureSpeed prints how long the operators themselves take: within a roll of TiKV, and
// to ask for a TiDB pod that was deleted. It judges nothing: what a machine that
// does much else takes is no failure.
func measureSpeed(ctx context.Context, plane *controlplane.ControlPlane) (err error) {
	story, err := scenario.Find(rolled)
	if err != nil {
		return err
	}
	r, err := rig.Open(ctx, plane, rig.Options{}.For(story))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	before, roll := story, story
	before.Steps, roll.Steps = story.Steps[:rollAt], story.Steps[rollAt:rollAt+2]
	if _, err := scenario.Run(ctx, r, before); err != nil {
		return err
	}
	sampler, err := newSampler(r)
	if err != nil {
		return err
	}
	sampling, stop := context.WithCancel(ctx)
	ended := make(chan map[string]time.Duration)
	go func() { ended <- sampler.run(sampling) }()
	_, err = scenario.Run(ctx, r, roll)
	stop()
	spent := <-ended
	if err != nil {
		return err
	}
	total := time.Duration(0)
	var parts []string
	for _, phase := range []string{phaseEviction, phaseRestart, phaseReturn, phaseOperator} {
		total += spent[phase]
		parts = append(parts, fmt.Sprintf("%s %s", phase, spent[phase].Round(10*time.Millisecond)))
	}
	fmt.Printf("roll of %d stores: %s = %s; operators: %s per store\n", len(sampler.stores), total.Round(10*time.Millisecond),
		strings.Join(parts, " + "), (spent[phaseOperator] / time.Duration(len(sampler.stores))).Round(time.Millisecond))
	return deletePods(ctx, plane, r)
}

// sampler tells what a roll of TiKV waits for at each moment.
type sampler struct {
	rig    *rig.Rig
	stores map[uint64]int // leaders at the beginning
}

func newSampler(r *rig.Rig) (*sampler, error) {
	s := &sampler{rig: r, stores: map[uint64]int{}}
	for _, db := range r.Databases.List() {
		stores, err := db.Model().Cluster().Stores()
		if err != nil {
			return nil, fmt.Errorf("list stores: %w", err)
		}
		for _, store := range stores {
			s.stores[store.Meta.ID] = store.Leaders
		}
	}
	return s, nil
}

// run adds up how long each phase took until the context ends.
func (s *sampler) run(ctx context.Context) map[string]time.Duration {
	spent := map[string]time.Duration{}
	ticker := time.NewTicker(sampleEvery)
	defer ticker.Stop()
	last := time.Now()
	for {
		phase := s.phase()
		select {
		case <-ctx.Done():
			return spent
		case <-ticker.C:
		}
		now := time.Now()
		spent[phase] += now.Sub(last)
		last = now
	}
}

// phase is what goes on. A pod that is gone and not asked for again is the
// operators' own time, and so is all other time.
func (s *sampler) phase() string {
	restarting := false
	s.rig.Watcher.Now(func(o rig.Objects) {
		for _, name := range o.Names("Pod", "b-") {
			pod := o.Get("Pod", name)
			ready := objects.Condition(pod, "Ready")
			restarting = restarting || pod.GetDeletionTimestamp() != nil || ready == nil || ready.Status != metav1.ConditionTrue
		}
	})
	if restarting {
		return phaseRestart
	}
	for _, db := range s.rig.Databases.List() {
		cluster := db.Model().Cluster()
		evicted, _, err := cluster.Evicted()
		if err != nil {
			continue
		}
		stores, err := cluster.Stores()
		if err != nil {
			continue
		}
		for _, store := range stores {
			switch leaves := slices.Contains(evicted, store.Meta.ID); {
			case store.StateName != "Up":
				return phaseRestart
			case leaves && store.Leaders > 0:
				return phaseEviction
			case !leaves && store.Leaders*3 < s.stores[store.Meta.ID]*2:
				return phaseReturn
			}
		}
	}
	return phaseOperator
}

// deletePods deletes the only TiDB pod again and again, and prints how long after
// its end the next one exists.
func deletePods(ctx context.Context, plane *controlplane.ControlPlane, r *rig.Rig) error {
	c, err := client.NewWithWatch(plane.Config, client.Options{})
	if err != nil {
		return fmt.Errorf("build client: %w", err)
	}
	var took []time.Duration
	for range deletions {
		one, err := deletePod(ctx, c, r)
		if err != nil {
			return err
		}
		took = append(took, one)
	}
	slices.Sort(took)
	fmt.Printf("a TiDB pod that is deleted is asked for again after %s (median of %d), %s at most\n",
		took[len(took)/2].Round(time.Millisecond), len(took), took[len(took)-1].Round(time.Millisecond))
	return nil
}

// deletePod deletes the TiDB pod, and returns how long after its end the next one
// existed, once that is Ready.
func deletePod(ctx context.Context, c client.WithWatch, r *rig.Rig) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, rig.Timeout)
	defer cancel()
	events, err := c.Watch(ctx, &corev1.PodList{}, client.InNamespace(r.Namespace()), client.MatchingFields{"metadata.name": tidbPod})
	if err != nil {
		return 0, fmt.Errorf("watch pod %s: %w", tidbPod, err)
	}
	defer events.Stop()
	if err := r.User().Delete(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace(), Name: tidbPod}}); err != nil {
		return 0, fmt.Errorf("delete pod %s: %w", tidbPod, err)
	}
	var gone time.Time
	for event := range events.ResultChan() {
		switch {
		case event.Type == watch.Deleted:
			gone = time.Now()
		case event.Type == watch.Added && !gone.IsZero():
			took := time.Since(gone)
			return took, r.Await(ctx, func(o rig.Objects) error { return o.AllConverged() })
		}
	}
	return 0, fmt.Errorf("watch pod %s: %w", tidbPod, context.Cause(ctx))
}
