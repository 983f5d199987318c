package scenario

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/e2e/objects"
)

// again is how soon what nothing wakes is tried again: an eviction that a
// PodDisruptionBudget has held back, as kubectl drain does, only faster.
const again = 200 * time.Millisecond

// nodeStep carries out the steps that name a node.
func (r *runner) nodeStep(ctx context.Context, s Step) error {
	verbs := []struct {
		node *Node
		do   func(context.Context, string) error
	}{
		{s.Cordon, func(ctx context.Context, node string) error { return r.cordon(ctx, node, true) }},
		{s.Uncordon, func(ctx context.Context, node string) error { return r.cordon(ctx, node, false) }},
		{s.Drain, r.drain},
		{s.LoseNode, r.world.LoseNode},
		{s.RecoverNode, r.world.RecoverNode},
		{s.FillDisk, r.world.FillDisk},
		{s.FreeDisk, r.world.FreeDisk},
		{s.DeleteNode, r.deleteNode},
	}
	for _, verb := range verbs {
		if verb.node == nil {
			continue
		}
		node, err := r.node(ctx, verb.node.Of)
		if err != nil {
			return err
		}
		return verb.do(ctx, node)
	}
	return errors.New("the step has no verb")
}

// node returns the node that a pod was on when it was first asked for.
func (r *runner) node(ctx context.Context, name string) (string, error) {
	if known := r.nodes[name]; known != "" {
		return known, nil
	}
	ctx, cancel := context.WithTimeout(ctx, request)
	defer cancel()
	var pod corev1.Pod
	if err := r.world.User().Get(ctx, types.NamespacedName{Namespace: r.world.Namespace(), Name: name}, &pod); err != nil {
		return "", fmt.Errorf("find the node of pod %s: %w", name, err)
	}
	if pod.Spec.NodeName == "" {
		return "", fmt.Errorf("pod %s is on no node", name)
	}
	r.nodes[name] = pod.Spec.NodeName
	return pod.Spec.NodeName, nil
}

func (r *runner) cordon(ctx context.Context, name string, on bool) error {
	ctx, cancel := context.WithTimeout(ctx, request)
	defer cancel()
	node := &corev1.Node{}
	node.Name = name
	body := fmt.Sprintf(`{"spec":{"unschedulable":%t}}`, on)
	if err := r.world.User().Patch(ctx, node, client.RawPatch(types.MergePatchType, []byte(body))); err != nil {
		return fmt.Errorf("cordon node %s: %w", name, err)
	}
	return nil
}

func (r *runner) deleteNode(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, request)
	defer cancel()
	node := &corev1.Node{}
	node.Name = name
	if err := r.world.User().Delete(ctx, node); err != nil {
		return fmt.Errorf("delete node %s: %w", name, err)
	}
	return nil
}

// drain evicts every pod of the namespace from a node and waits until the last
// of them is gone.
func (r *runner) drain(ctx context.Context, name string) error {
	if err := r.cordon(ctx, name, true); err != nil {
		return err
	}
	limit := r.scenario.within(0)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("node %s is not empty after %s", name, limit))
	defer cancel()
	retry := time.NewTicker(again)
	defer retry.Stop()
	for {
		var pods corev1.PodList
		if err := r.world.User().List(ctx, &pods, client.InNamespace(r.world.Namespace()), client.MatchingFields{"spec.nodeName": name}); err != nil {
			return fmt.Errorf("list the pods of node %s: %w", name, err)
		}
		if len(pods.Items) == 0 {
			return nil
		}
		var held error
		for i := range pods.Items {
			held = errors.Join(held, r.evict(ctx, &pods.Items[i]))
		}
		select {
		case <-retry.C:
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), held)
		}
	}
}

// evict evicts a pod. What it returns is why the pod has to wait.
func (r *runner) evict(ctx context.Context, pod *corev1.Pod) error {
	if pod.DeletionTimestamp != nil {
		return fmt.Errorf("pod %s is terminating", pod.Name)
	}
	r.deleted[objects.Key{Kind: kindPod, Name: pod.Name}] = pod.UID
	err := r.world.User().SubResource("eviction").Create(ctx, pod, &policyv1.Eviction{})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
