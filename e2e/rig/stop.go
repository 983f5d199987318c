package rig

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// terminate stops a pod's processes and removes it, as the kubelet does: preStop
// hook and shutdown together have the grace period.
func (a *actor) terminate(ctx context.Context, pod *corev1.Pod) (time.Duration, error) {
	grace := a.delays.seconds(ptr.Deref(pod.DeletionGracePeriodSeconds, 0))
	if left := a.handOver(pod, grace); left > 0 {
		return left, nil
	}
	if left := a.wait(pod, "stop", min(grace, a.delays.seconds(preStop(pod))+a.delays.Stop)); left > 0 {
		return left, nil
	}
	if err := a.stop(client.ObjectKeyFromObject(pod), ""); err != nil {
		return 0, err
	}
	err := a.client.Delete(ctx, pod, client.GracePeriodSeconds(0), client.Preconditions{UID: ptr.To(pod.UID)})
	return 0, client.IgnoreNotFound(err)
}

// preStop is how many seconds the longest preStop hook of a pod sleeps.
func preStop(pod *corev1.Pod) int64 {
	longest := int64(0)
	for i := range pod.Spec.Containers {
		if l := pod.Spec.Containers[i].Lifecycle; l != nil && l.PreStop != nil && l.PreStop.Sleep != nil {
			longest = max(longest, l.PreStop.Sleep.Seconds)
		}
	}
	return longest
}

// crash is what a scenario has in mind for the process of a pod.
type crash struct {
	// left is how often it is still to crash; negative without end.
	left int
	// restarts is how often it has.
	restarts int32
	// until is when it is started again.
	until time.Time
}

// errNoProcess is what a crash ends with that hits nothing.
var errNoProcess = errors.New("no process runs in it")

// crash lets the process of a pod crash so many times.
func (a *actor) crash(ctx context.Context, namespace, name string, times int) error {
	var pod corev1.Pod
	key := types.NamespacedName{Namespace: namespace, Name: name}
	if err := a.live.Get(ctx, key, &pod); err != nil {
		return fmt.Errorf("crash pod %s: %w", name, err)
	}
	a.mu.Lock()
	running := a.processes[key]
	if running != nil {
		c := a.crashing[pod.UID]
		if c == nil {
			c = &crash{}
			a.crashing[pod.UID] = c
		}
		c.left = times
	}
	a.mu.Unlock()
	if running == nil {
		return fmt.Errorf("crash pod %s: %w", name, errNoProcess)
	}
	return a.poke(ctx, &pod)
}

// crashes says whether the process of a pod is to crash as soon as it runs.
func (a *actor) crashes(pod types.UID) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.crashing[pod]
	return c != nil && c.left != 0
}

// crashed lets the process of a pod crash that is to, and says how long it stays
// down and how often it has crashed by now. As with a kubelet, it is started
// again at once after the first time, and then less and less soon.
func (a *actor) crashed(pod *corev1.Pod) (down time.Duration, restarts int32, err error) {
	key := client.ObjectKeyFromObject(pod)
	a.mu.Lock()
	c := a.crashing[pod.UID]
	if c == nil {
		a.mu.Unlock()
		return 0, 0, nil
	}
	due := c.left != 0 && a.processes[key] != nil
	if due {
		c.restart(a.delays)
		if c.left > 0 {
			c.left--
		}
	}
	down, restarts = max(0, time.Until(c.until)), c.restarts
	a.mu.Unlock()
	if due {
		err = a.stop(key, "")
	}
	return down, restarts, err
}

// restart counts a process that has ended by itself, and notes when it is started
// again.
func (c *crash) restart(delays Delays) {
	const first, longest = 10, 300 // seconds of back-off
	backoff := time.Duration(0)
	if c.restarts > 0 {
		backoff = delays.seconds(min(longest, int64(first)<<min(c.restarts-1, 5)))
	}
	c.restarts++
	c.until = time.Now().Add(max(again, backoff))
}

// refused notes that the process of a pod has ended because PD's etcd does not take it
// in. Other processes that cannot start wait in reality, and are tried again here.
func (a *actor) refused(pod types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.crashing[pod]
	if c == nil {
		c = &crash{}
		a.crashing[pod] = c
	}
	c.restart(a.delays)
}

// stop stops the process of a pod, except one that belongs to keep.
func (a *actor) stop(key types.NamespacedName, keep types.UID) error {
	a.mu.Lock()
	running := a.processes[key]
	if running == nil || running.pod == keep {
		a.mu.Unlock()
		return nil
	}
	delete(a.processes, key)
	a.mu.Unlock()
	if err := running.stop(); err != nil {
		return fmt.Errorf("stop pod %s: %w", key, err)
	}
	return nil
}

// close stops everything.
func (a *actor) close() error {
	a.mu.Lock()
	keys := make([]types.NamespacedName, 0, len(a.processes))
	for key := range a.processes {
		keys = append(keys, key)
	}
	a.mu.Unlock()
	for _, key := range keys {
		if err := a.stop(key, ""); err != nil {
			return err
		}
	}
	return nil
}
