package rig

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// StorageClass is the default class of the simulated world.
const StorageClass = "rig-standard"

// zones of the simulated nodes, one node each.
func zones() []string { return []string{"zone-a", "zone-b", "zone-c"} }

// world makes the nodes and the StorageClass, which all rigs of a control plane
// share.
func world(ctx context.Context, c client.Client) error {
	for _, zone := range zones() {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "rig-" + zone, Labels: map[string]string{
			corev1.LabelHostname: "rig-" + zone, corev1.LabelTopologyZone: zone,
		}}}
		err := c.Create(ctx, node)
		if err == nil {
			node.Status.Allocatable = corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("256Gi"), corev1.ResourcePods: resource.MustParse("1000"),
			}
			node.Status.Capacity = node.Status.Allocatable
			err = c.Status().Update(ctx, node)
		}
		if client.IgnoreAlreadyExists(err) != nil {
			return fmt.Errorf("create node of %s: %w", zone, err)
		}
	}
	class := &storagev1.StorageClass{
		ObjectMeta:        metav1.ObjectMeta{Name: StorageClass, Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}},
		Provisioner:       "rig.tidb-groups.dev",
		VolumeBindingMode: ptr.To(storagev1.VolumeBindingWaitForFirstConsumer),
	}
	if err := c.Create(ctx, class); client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("create StorageClass %s: %w", StorageClass, err)
	}
	return nil
}
