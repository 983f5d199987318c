package rig

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// StorageClass is the default class of the simulated world. Its volumes
	// follow their pods.
	StorageClass = "rig-standard"
	// LocalStorageClass has volumes that stay on the node of the first pod.
	LocalStorageClass = "rig-local"
	// labelRig marks what lies outside the namespace of a rig with its name.
	labelRig = "rig.tidb-groups.dev/namespace"
	// standardNodes is how many nodes a rig has that does not say.
	standardNodes = 3
)

// Delays say how long things take in the simulated world; zero is at once.
type Delays struct {
	// Schedule a pod, and bind its claims.
	Schedule time.Duration
	// Start from the scheduled pod to the running one.
	Start time.Duration
	// Ready from the running pod to the ready one.
	Ready time.Duration
	// Stop is how long a process takes to end that is asked to, once its preStop
	// hook is done: at most the pod's grace period, both together.
	Stop time.Duration
	// Second is how long a second of the kubelet's and the node controller's
	// takes, of which preStop hooks, grace periods, back-offs and tolerations
	// have many; 10 ms if zero.
	Second time.Duration
}

// seconds is how long so many seconds of Kubernetes' take.
func (d Delays) seconds(n int64) time.Duration {
	second := d.Second
	if second == 0 {
		second = 10 * time.Millisecond
	}
	return time.Duration(n) * second
}

// nodeZones of the simulated nodes, which go round.
func nodeZones() []string { return []string{"zone-a", "zone-b", "zone-c"} }

// createNodes makes the nodes of a rig, which no other rig uses.
func createNodes(ctx context.Context, c client.Client, namespace string, count int) error {
	for i := range count {
		zone := nodeZones()[i%len(nodeZones())]
		name := fmt.Sprintf("%s-%d", namespace, i)
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			corev1.LabelHostname: name, corev1.LabelTopologyZone: zone, labelRig: namespace,
		}}}
		if err := c.Create(ctx, node); err != nil {
			return fmt.Errorf("create node of %s: %w", zone, err)
		}
		node.Status.Allocatable = corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("256Gi"), corev1.ResourcePods: resource.MustParse("1000"),
		}
		node.Status.Capacity = node.Status.Allocatable
		setNodeReady(node, corev1.ConditionTrue, "KubeletReady", "kubelet is posting ready status")
		if err := c.Status().Update(ctx, node); err != nil {
			return fmt.Errorf("write status of node %s: %w", name, err)
		}
	}
	return nil
}

// createStorageClasses makes the StorageClasses, which all rigs of a control plane share.
func createStorageClasses(ctx context.Context, c client.Client) error {
	for name, isDefault := range map[string]string{StorageClass: "true", LocalStorageClass: "false"} {
		class := &storagev1.StorageClass{
			ObjectMeta:        metav1.ObjectMeta{Name: name, Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": isDefault}},
			Provisioner:       "rig.tidb-groups.dev",
			VolumeBindingMode: ptr.To(storagev1.VolumeBindingWaitForFirstConsumer), AllowVolumeExpansion: ptr.To(true),
		}
		if err := c.Create(ctx, class); client.IgnoreAlreadyExists(err) != nil {
			return fmt.Errorf("create StorageClass %s: %w", name, err)
		}
	}
	return nil
}

// setNodeReady sets a node's condition Ready.
func setNodeReady(node *corev1.Node, status corev1.ConditionStatus, reason, message string) {
	condition := corev1.NodeCondition{
		Type: corev1.NodeReady, Status: status, Reason: reason, Message: message,
		LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now(),
	}
	for i := range node.Status.Conditions {
		if node.Status.Conditions[i].Type == corev1.NodeReady {
			node.Status.Conditions[i] = condition
			return
		}
	}
	node.Status.Conditions = append(node.Status.Conditions, condition)
}

// isNodeReady says whether the node controller has heard of a node's kubelet.
func isNodeReady(node *corev1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
