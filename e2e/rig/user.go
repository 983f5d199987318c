package rig

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// Follow returns a client after whose writes [Watcher.Await] does not look
// before the watcher has seen them. Without it a test that writes and then waits
// may be content with how things were before: the watch is late on a busy machine.
func (w *Watcher) Follow(c client.WithWatch) client.Client {
	return interceptor.NewClient(c, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			return w.wrote(ctx, c, object, c.Create(ctx, object, options...))
		},
		Update: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.UpdateOption) error {
			return w.wrote(ctx, c, object, c.Update(ctx, object, options...))
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			return w.wrote(ctx, c, object, c.Patch(ctx, object, patch, options...))
		},
		Apply: func(ctx context.Context, c client.WithWatch, object runtime.ApplyConfiguration, options ...client.ApplyOption) error {
			err := c.Apply(ctx, object, options...)
			if applied, ok := object.(client.Object); ok {
				return w.wrote(ctx, c, applied, err)
			}
			return err
		},
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			return w.wrote(ctx, c, object, c.Delete(ctx, object, options...))
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, name string, object client.Object, options ...client.SubResourceUpdateOption) error {
			return w.wrote(ctx, c, object, c.SubResource(name).Update(ctx, object, options...))
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, name string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			return w.wrote(ctx, c, object, c.SubResource(name).Patch(ctx, object, patch, options...))
		},
	})
}

// wrote notes the version that an object has after a request that ended with an
// error or without.
func (w *Watcher) wrote(ctx context.Context, c client.Client, object client.Object, failed error) error {
	if failed != nil {
		return failed
	}
	gvk, err := apiutil.GVKForObject(object, c.Scheme())
	if err != nil {
		return fmt.Errorf("find kind of %T: %w", object, err)
	}
	if _, ok := watchedResources()[gvk.Kind]; !ok || object.GetNamespace() != w.namespace {
		return nil
	}
	now, err := readMetadata(ctx, c, gvk, object)
	if err != nil {
		return client.IgnoreNotFound(err) // its deletion has no version that could be asked for
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.written[gvk.Kind] = newerVersion(w.written[gvk.Kind], now.ResourceVersion)
	return nil
}

func readMetadata(ctx context.Context, c client.Client, gvk schema.GroupVersionKind, object client.Object) (*metav1.PartialObjectMetadata, error) {
	now := &metav1.PartialObjectMetadata{}
	now.SetGroupVersionKind(gvk)
	return now, c.Get(ctx, client.ObjectKeyFromObject(object), now)
}

// late tells which of the user's writes the watcher has not seen yet. The watch of
// a kind brings versions in their order.
func (w *Watcher) late() error {
	for kind, version := range w.written {
		if newerVersion(w.seen[kind], version) != w.seen[kind] {
			return fmt.Errorf("the watch of %s is at version %s, the user has seen %s", kind, w.seen[kind], version)
		}
	}
	return nil
}

// newerVersion returns the later of two versions of objects of one kind. An empty one is
// older than all.
func newerVersion(a, b string) string {
	if order, err := resourceversion.CompareResourceVersion(a, b); a == "" || err == nil && order < 0 {
		return b
	}
	return a
}
