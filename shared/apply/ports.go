package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// hasMovedPort reports whether another writer has given a port of a Service another number. By its number a port is told
// from others: the owner's would come beside it, and Kubernetes refuses two of a name.
func hasMovedPort(desired, live client.Object) bool {
	want, is := desired.(*corev1.Service)
	have, too := live.(*corev1.Service)
	return is && too && slices.ContainsFunc(have.Spec.Ports, func(there corev1.ServicePort) bool {
		return slices.ContainsFunc(want.Spec.Ports, func(p corev1.ServicePort) bool { return p.Name == there.Name && p.Port != there.Port })
	})
}

// write applies an object. Ports that another writer has moved are written as a whole before.
func (w Writer) write(ctx context.Context, want *unstructured.Unstructured, desired, live client.Object) error {
	options := []client.ApplyOption{client.FieldOwner(w.Owner), client.ForceOwnership}
	err := w.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(want), options...)
	if !apierrors.IsInvalid(err) || !hasMovedPort(desired, live) {
		return err
	}
	ports, _, _ := unstructured.NestedSlice(want.Object, "spec", "ports")
	raw, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": live.GetUID(), "resourceVersion": live.GetResourceVersion()}, "spec": map[string]any{"ports": ports}})
	if err != nil {
		return fmt.Errorf("encode ports: %w", err)
	}
	changed, _ := live.DeepCopyObject().(client.Object)
	if err := w.Client.Patch(ctx, changed, client.RawPatch(types.MergePatchType, raw), client.FieldOwner(w.Owner)); err != nil {
		return err
	}
	if want.GetResourceVersion() != "" {
		want.SetResourceVersion(changed.GetResourceVersion())
	}
	return w.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(want), options...)
}
