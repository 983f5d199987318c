package rig

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// queue is what a controller takes its work from.
type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// schedule binds a pod's claims and the pod, or says why it can't.
func (a *actor) schedule(ctx context.Context, pod *corev1.Pod) (time.Duration, error) {
	if left := a.wait(pod, "schedule", a.delays.Schedule); left > 0 {
		return left, nil
	}
	claims, why, err := a.claims(ctx, pod)
	if err != nil {
		return 0, err
	}
	nodes := &corev1.NodeList{}
	if err := a.client.List(ctx, nodes); err != nil {
		return 0, fmt.Errorf("list nodes: %w", err)
	}
	slices.SortFunc(nodes.Items, func(x, y corev1.Node) int { return strings.Compare(x.Name, y.Name) })
	var node string
	if why == "" {
		node, why = a.pick(pod, nodes.Items)
	}
	if node == "" {
		return 0, a.unschedulable(ctx, pod, fmt.Sprintf("0/%d nodes are available: %s.", len(nodes.Items), why))
	}
	for i := range claims {
		if err := a.bind(ctx, &claims[i]); err != nil {
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

// claims returns the claims of a pod, or says which can't be bound.
func (a *actor) claims(ctx context.Context, pod *corev1.Pod) ([]corev1.PersistentVolumeClaim, string, error) {
	var out []corev1.PersistentVolumeClaim
	for _, name := range claimNames(pod) {
		var claim corev1.PersistentVolumeClaim
		err := a.client.Get(ctx, types.NamespacedName{Namespace: pod.Namespace, Name: name}, &claim)
		switch {
		case apierrors.IsNotFound(err):
			return nil, fmt.Sprintf("persistentvolumeclaim %q not found", name), nil
		case err != nil:
			return nil, "", fmt.Errorf("get claim %s: %w", name, err)
		case claim.DeletionTimestamp != nil:
			return nil, fmt.Sprintf("persistentvolumeclaim %q is being deleted", name), nil
		case claim.Status.Phase == corev1.ClaimBound:
			out = append(out, claim)
			continue
		}
		class := ""
		if claim.Spec.StorageClassName != nil {
			class = *claim.Spec.StorageClassName
		}
		var storageClass storagev1.StorageClass
		err = a.client.Get(ctx, types.NamespacedName{Name: class}, &storageClass)
		switch {
		case class == "", apierrors.IsNotFound(err):
			return nil, "pod has unbound immediate PersistentVolumeClaims", nil
		case err != nil:
			return nil, "", fmt.Errorf("get StorageClass %s: %w", class, err)
		}
		out = append(out, claim)
	}
	return out, "", nil
}

// bind gives a claim a volume. No PersistentVolume is made: nobody asks.
func (a *actor) bind(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	if claim.Status.Phase == corev1.ClaimBound {
		return nil
	}
	if claim.Spec.VolumeName == "" {
		before := claim.DeepCopy()
		claim.Spec.VolumeName = "pv-" + string(claim.UID)
		if err := a.client.Patch(ctx, claim, client.MergeFrom(before)); err != nil {
			return fmt.Errorf("bind claim %s: %w", claim.Name, err)
		}
	}
	before := claim.DeepCopy()
	claim.Status.Phase = corev1.ClaimBound
	claim.Status.AccessModes = claim.Spec.AccessModes
	claim.Status.Capacity = claim.Spec.Resources.Requests
	if err := a.client.Status().Patch(ctx, claim, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("bind claim %s: %w", claim.Name, err)
	}
	return nil
}

// pick takes the fitting node that has the fewest pods of the pod's group, and
// assumes the pod to be there from now on.
func (a *actor) pick(pod *corev1.Pod, nodes []corev1.Node) (node, why string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if at := a.placed[pod.UID]; at != "" {
		return at, ""
	}
	group := pod.Labels[v1alpha1.LabelGroup]
	reasons := map[string]int{}
	fewest := 0
	for i := range nodes {
		if reason := unfit(pod, &nodes[i]); reason != "" {
			reasons[reason]++
			continue
		}
		have := 0
		for uid, at := range a.placed {
			if at == nodes[i].Name && a.spread[uid] == group {
				have++
			}
		}
		if node == "" || have < fewest {
			node, fewest = nodes[i].Name, have
		}
	}
	if node != "" {
		a.placed[pod.UID], a.spread[pod.UID] = node, group
		return node, ""
	}
	var parts []string
	for _, reason := range slices.Sorted(maps.Keys(reasons)) {
		parts = append(parts, fmt.Sprintf("%d %s", reasons[reason], reason))
	}
	return "", strings.Join(parts, ", ")
}

// unfit says why a pod does not fit on a node, in the scheduler's words.
func unfit(pod *corev1.Pod, node *corev1.Node) string {
	if !labels.SelectorFromSet(pod.Spec.NodeSelector).Matches(labels.Set(node.Labels)) {
		return "node(s) didn't match Pod's node affinity/selector"
	}
	if node.Spec.Unschedulable {
		return "node(s) were unschedulable"
	}
	for _, resource := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		have := node.Status.Allocatable[resource]
		for i := range pod.Spec.Containers {
			want := pod.Spec.Containers[i].Resources.Requests[resource]
			have.Sub(want)
		}
		if have.Sign() < 0 {
			return "Insufficient " + string(resource)
		}
	}
	return ""
}

func (a *actor) unschedulable(ctx context.Context, pod *corev1.Pod, message string) error {
	changed := pod.DeepCopy()
	setPodCondition(changed, corev1.PodScheduled, corev1.ConditionFalse, corev1.PodReasonUnschedulable, message)
	return a.patchStatus(ctx, pod, changed)
}

// claimNames returns the claims that a pod mounts.
func claimNames(pod *corev1.Pod) []string {
	var out []string
	for _, v := range pod.Spec.Volumes {
		if v.PersistentVolumeClaim != nil {
			out = append(out, v.PersistentVolumeClaim.ClaimName)
		}
	}
	return out
}
