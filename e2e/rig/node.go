package rig

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

const (
	// monitorGrace is after how many seconds the node controller calls a node
	// unreachable whose kubelet reports nothing: --node-monitor-grace-period.
	monitorGrace = 50
	// orphanGrace is after how many seconds pods of a node that does not exist
	// are deleted by force: the quarantine of the pod garbage collector.
	orphanGrace = 40
)

// errNodeLost is what a process ends with on a node that is off the network.
var errNodeLost = errors.New("its node is off the network")

// nodeActor plays the node controller, the taint eviction controller and the pod
// garbage collector for the nodes of a rig.
type nodeActor struct{ *actor }

func (n *nodeActor) setUp(manager ctrl.Manager) error {
	err := ctrl.NewControllerManagedBy(manager).
		Named("node" + ActorSuffix).
		For(&corev1.Node{}).
		WatchesRawSource(source.Channel(n.nodeWake, &handler.EnqueueRequestForObject{})).
		Complete(n)
	if err != nil {
		return fmt.Errorf("build node actor: %w", err)
	}
	return nil
}

// isLost says whether a node is off the network.
func (a *actor) isLost(node string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, lost := a.lost[node]
	return lost
}

// loseNode takes a node off the network. Its processes run on, and cannot be reached.
func (a *actor) loseNode(ctx context.Context, name string) error {
	a.mu.Lock()
	a.lost[name] = time.Now()
	var there []types.NamespacedName
	for key, p := range a.processes {
		if p.node == name {
			there = append(there, key)
		}
	}
	a.mu.Unlock()
	for _, key := range there {
		if err := a.stop(key, ""); err != nil {
			return err
		}
	}
	return a.pokeNode(ctx, name)
}

// recoverNode brings a lost node back.
func (a *actor) recoverNode(ctx context.Context, name string) error {
	a.mu.Lock()
	delete(a.lost, name)
	a.mu.Unlock()
	return a.pokeAllOn(ctx, name)
}

// pokeAllOn has a node looked at, and every pod that is bound to it.
func (a *actor) pokeAllOn(ctx context.Context, name string) error {
	pods, err := a.podsOn(ctx, name)
	if err != nil {
		return err
	}
	for i := range pods {
		if err := a.poke(ctx, &pods[i]); err != nil {
			return err
		}
	}
	return a.pokeNode(ctx, name)
}

func (a *actor) pokeNode(ctx context.Context, name string) error {
	select {
	case a.nodeWake <- event.GenericEvent{Object: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// podsOn returns the pods of the rig that are bound to a node.
func (a *actor) podsOn(ctx context.Context, node string) ([]corev1.Pod, error) {
	pods := &corev1.PodList{}
	if err := a.live.List(ctx, pods, client.InNamespace(a.namespace), client.MatchingFields{"spec.nodeName": node}); err != nil {
		return nil, fmt.Errorf("list the pods of node %s: %w", node, err)
	}
	return pods.Items, nil
}

// Reconcile says of one node what its kubelet is heard of, and evicts the pods
// of one that is not.
func (n *nodeActor) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var node corev1.Node
	err := n.client.Get(ctx, request.NamespacedName, &node)
	if apierrors.IsNotFound(err) {
		left, err := n.orphans(ctx, request.Name)
		return reconcile.Result{RequeueAfter: left}, err
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	n.mu.Lock()
	since, lost := n.lost[node.Name]
	n.mu.Unlock()
	if left := time.Until(since.Add(n.delays.seconds(monitorGrace))); lost && left > 0 {
		return reconcile.Result{RequeueAfter: left}, nil
	}
	if err := n.speak(ctx, &node, !lost); err != nil || !lost {
		return reconcile.Result{}, err
	}
	left, err := n.evict(ctx, node.Name, since.Add(n.delays.seconds(monitorGrace)))
	return reconcile.Result{RequeueAfter: left}, err
}

// speak writes what is heard of a kubelet, and the taints that come of it.
func (n *nodeActor) speak(ctx context.Context, node *corev1.Node, heard bool) error {
	after := node.DeepCopy()
	after.Spec.Taints = slices.DeleteFunc(after.Spec.Taints, func(t corev1.Taint) bool {
		return slices.Contains([]string{corev1.TaintNodeUnreachable, corev1.TaintNodeUnschedulable, corev1.TaintNodeNotReady, corev1.TaintNodeDiskPressure}, t.Key)
	})
	if n.isFull(node.Name) {
		after.Spec.Taints = append(after.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeDiskPressure, Effect: corev1.TaintEffectNoSchedule})
	}
	if node.Spec.Unschedulable {
		after.Spec.Taints = append(after.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
	}
	if !heard {
		after.Spec.Taints = append(after.Spec.Taints,
			corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoSchedule},
			corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute})
	}
	if !slices.Equal(listTaints(node), listTaints(after)) {
		if err := n.client.Patch(ctx, after, client.MergeFrom(node)); err != nil {
			return fmt.Errorf("write taints of node %s: %w", node.Name, err)
		}
	}
	if isNodeReady(node) == heard {
		return nil
	}
	before := after.DeepCopy()
	if heard {
		setNodeReady(after, corev1.ConditionTrue, "KubeletReady", "kubelet is posting ready status")
	} else {
		setNodeReady(after, corev1.ConditionUnknown, "NodeStatusUnknown", "Kubelet stopped posting node status.")
	}
	if err := n.client.Status().Patch(ctx, after, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("write status of node %s: %w", node.Name, err)
	}
	return nil
}

func listTaints(node *corev1.Node) []string {
	var out []string
	for _, t := range node.Spec.Taints {
		out = append(out, t.Key+string(t.Effect))
	}
	return out
}

// evict calls the pods of an unreachable node not ready, deletes those that have
// tolerated it for long enough, and says when to look again.
func (n *nodeActor) evict(ctx context.Context, node string, since time.Time) (time.Duration, error) {
	pods, err := n.podsOn(ctx, node)
	if err != nil {
		return 0, err
	}
	next := time.Duration(0)
	for i := range pods {
		pod := &pods[i]
		changed := pod.DeepCopy()
		setPodCondition(changed, corev1.PodReady, corev1.ConditionFalse, "NodeNotReady", "")
		if err := n.patchStatus(ctx, pod, changed); client.IgnoreNotFound(err) != nil {
			return 0, err
		}
		limit, forever := tolerationSeconds(pod)
		if forever || pod.DeletionTimestamp != nil {
			continue
		}
		if left := time.Until(since.Add(n.delays.seconds(limit))); left > 0 {
			if next == 0 || left < next {
				next = left
			}
			continue
		}
		if err := n.client.Delete(ctx, pod, client.Preconditions{UID: ptr.To(pod.UID)}); client.IgnoreNotFound(err) != nil {
			return 0, fmt.Errorf("evict pod %s: %w", pod.Name, err)
		}
	}
	return next, nil
}

// tolerationSeconds says for how many seconds a pod stays on an unreachable node. The API
// server gives every pod that says nothing five minutes.
func tolerationSeconds(pod *corev1.Pod) (seconds int64, forever bool) {
	var said []int64
	found := false
	for _, t := range pod.Spec.Tolerations {
		if t.Key != "" && t.Key != corev1.TaintNodeUnreachable || t.Effect != "" && t.Effect != corev1.TaintEffectNoExecute {
			continue
		}
		found = true
		if t.TolerationSeconds != nil {
			said = append(said, *t.TolerationSeconds)
		}
	}
	if len(said) == 0 {
		return 0, found
	}
	return slices.Min(said), false
}

// orphans deletes the pods of a node that does not exist any more by force, and
// says how long it still waits before it does.
func (n *nodeActor) orphans(ctx context.Context, node string) (time.Duration, error) {
	pods, err := n.podsOn(ctx, node)
	if err != nil {
		return 0, err
	}
	for i := range pods {
		if left := n.wait(&pods[i], "orphan", n.delays.seconds(orphanGrace)); left > 0 {
			return left, nil
		}
		if err := n.stop(client.ObjectKeyFromObject(&pods[i]), ""); err != nil {
			return 0, err
		}
		err := n.client.Delete(ctx, &pods[i], client.GracePeriodSeconds(0), client.Preconditions{UID: ptr.To(pods[i].UID)})
		if client.IgnoreNotFound(err) != nil {
			return 0, fmt.Errorf("delete orphaned pod %s: %w", pods[i].Name, err)
		}
	}
	return 0, nil
}
