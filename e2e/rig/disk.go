package rig

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// isFull says whether the disk of a node's kubelet is full.
func (a *actor) isFull(node string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.full[node]
}

// fillDisk leaves no room on the disk of a node: its kubelet evicts what runs there
// and turns away what comes. The scheduler hears of it a little later.
func (a *actor) fillDisk(ctx context.Context, name string) error {
	a.mu.Lock()
	a.full[name] = true
	a.mu.Unlock()
	return a.pokeAllOn(ctx, name)
}

// freeDisk makes room again.
func (a *actor) freeDisk(ctx context.Context, name string) error {
	a.mu.Lock()
	delete(a.full, name)
	a.mu.Unlock()
	return a.pokeNode(ctx, name)
}

// expel ends a pod on a node whose disk is full.
func (a *actor) expel(ctx context.Context, pod *corev1.Pod) error {
	if err := a.stop(client.ObjectKeyFromObject(pod), ""); err != nil {
		return err
	}
	return a.patchStatus(ctx, pod, evictedPod(pod))
}

// evictedPod returns the pod as a kubelet leaves it that has no room for it: one
// that was started is evicted, any other turned away.
func evictedPod(pod *corev1.Pod) *corev1.Pod {
	out := pod.DeepCopy()
	out.Status.Phase, out.Status.Reason = corev1.PodFailed, "Evicted"
	if len(pod.Status.ContainerStatuses) == 0 {
		out.Status.Message = "Pod was rejected: The node had condition: [DiskPressure]. "
		return out
	}
	out.Status.Message = "The node was low on resource: ephemeral-storage. "
	setPodCondition(out, corev1.PodReady, corev1.ConditionFalse, "PodFailed", "")
	for i := range out.Status.ContainerStatuses {
		c := &out.Status.ContainerStatuses[i]
		c.Ready, c.State = false, corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "Error"}}
	}
	return out
}
