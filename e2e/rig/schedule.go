package rig

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// schedule binds a pod's claims and the pod, or says why it can't.
func (a *actor) schedule(ctx context.Context, pod *corev1.Pod) (time.Duration, error) {
	if left := a.wait(pod, "schedule", a.delays.Schedule); left > 0 {
		return left, nil
	}
	claims, why, err := a.claims(ctx, pod)
	if err != nil {
		return 0, err
	}
	if why != "" {
		return 0, a.unschedulable(ctx, pod, why)
	}
	node, why, err := a.place(ctx, pod, claims)
	if err != nil {
		return 0, err
	}
	if node == "" {
		return 0, a.unschedulable(ctx, pod, why)
	}
	for i := range claims {
		if err := a.bind(ctx, &claims[i], node); err != nil {
			return 0, err
		}
	}
	binding := &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: node},
	}
	if err := a.client.SubResource("binding").Create(ctx, pod, binding); err != nil {
		return 0, client.IgnoreAlreadyExists(err)
	}
	return 0, nil
}

// place finds a node for a pod, and assumes the pod to be there from now on.
func (a *actor) place(ctx context.Context, pod *corev1.Pod, claims []corev1.PersistentVolumeClaim) (node, why string, err error) {
	var p placement
	if p.volumes, err = a.volumeAffinity(ctx, claims); err != nil {
		return "", "", err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if at := a.assumed[pod.UID]; at != "" {
		return at, "", nil
	}
	// What is listed is read and nothing else, and may be thousands.
	nodes, pods := &corev1.NodeList{}, &corev1.PodList{}
	if err := a.client.List(ctx, nodes, client.UnsafeDisableDeepCopy); err != nil {
		return "", "", fmt.Errorf("list nodes: %w", err)
	}
	if err := a.client.List(ctx, pods, client.InNamespace(pod.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return "", "", fmt.Errorf("list pods: %w", err)
	}
	p.nodes = slices.Clone(nodes.Items)
	slices.SortFunc(p.nodes, func(x, y corev1.Node) int { return strings.Compare(x.Name, y.Name) })
	for i := range pods.Items {
		at := pods.Items[i].Spec.NodeName
		if at == "" {
			at = a.assumed[pods.Items[i].UID]
		}
		if at != "" {
			p.neighbours = append(p.neighbours, neighbour{pod: &pods.Items[i], node: at})
		}
	}
	if node, why = p.pick(pod); node != "" {
		a.assumed[pod.UID] = node
	}
	return node, why, nil
}

func (a *actor) unschedulable(ctx context.Context, pod *corev1.Pod, message string) error {
	changed := pod.DeepCopy()
	setPodCondition(changed, corev1.PodScheduled, corev1.ConditionFalse, corev1.PodReasonUnschedulable, message)
	return a.patchStatus(ctx, pod, changed)
}
