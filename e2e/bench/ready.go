package bench

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/tidb-groups/tidb-groups/e2e/objects"
)

// readiness knows which clusters and pods of a namespace are ready.
type readiness struct {
	adapter Adapter
	changed chan struct{}

	lock     sync.Mutex
	clusters map[string]bool
	pods     map[string]bool
}

// watchReady watches the clusters of an adapter and the pods of a namespace.
func watchReady(ctx context.Context, config *rest.Config, a Adapter, namespace string) (*readiness, error) {
	one, err := a.object("any", namespace)
	if err != nil {
		return nil, err
	}
	http, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("watch clusters: %w", err)
	}
	mapper, err := apiutil.NewDynamicRESTMapper(config, http)
	if err != nil {
		return nil, fmt.Errorf("watch clusters: %w", err)
	}
	kind := one.GroupVersionKind()
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, fmt.Errorf("the API server does not know the kind of cluster: %w: name its CRD in apply", err)
	}
	reader, err := dynamic.NewForConfigAndClient(config, http)
	if err != nil {
		return nil, fmt.Errorf("watch clusters: %w", err)
	}
	r := &readiness{adapter: a, changed: make(chan struct{}, 1), clusters: map[string]bool{}, pods: map[string]bool{}}
	informers := dynamicinformer.NewFilteredDynamicSharedInformerFactory(reader, 0, namespace, nil)
	pods := corev1.SchemeGroupVersion.WithResource("pods")
	for resource, note := range map[toolscache.SharedIndexInformer]func(*unstructured.Unstructured, bool){
		informers.ForResource(mapping.Resource).Informer(): func(o *unstructured.Unstructured, there bool) { r.clusters[o.GetName()] = there && a.Ready.ready(o) },
		informers.ForResource(pods).Informer():             func(o *unstructured.Unstructured, there bool) { r.pods[o.GetName()] = there && podReady(o) },
	} {
		if _, err := resource.AddEventHandler(r.handler(note)); err != nil {
			return nil, fmt.Errorf("watch clusters: %w", err)
		}
	}
	informers.Start(ctx.Done())
	return r, nil
}

// handler notes each version of an object.
func (r *readiness) handler(note func(o *unstructured.Unstructured, there bool)) toolscache.ResourceEventHandler {
	return objects.Handler(func(o *unstructured.Unstructured, there bool) {
		r.lock.Lock()
		defer r.lock.Unlock()
		note(o, there)
		select {
		case r.changed <- struct{}{}:
		default: // one look will do for both
		}
	})
}

// await waits until so many clusters, and the pods of so many, are ready.
func (r *readiness) await(ctx context.Context, clusters int) error {
	for {
		have, pods := r.count()
		if have >= clusters && pods >= clusters*r.adapter.Ready.Pods {
			return nil
		}
		select {
		case <-r.changed:
		case <-ctx.Done():
			return fmt.Errorf("%d clusters and %d pods are ready: %w", have, pods, ctx.Err())
		}
	}
}

func (r *readiness) count() (clusters, pods int) {
	r.lock.Lock()
	defer r.lock.Unlock()
	for _, ready := range r.clusters {
		if ready {
			clusters++
		}
	}
	for _, ready := range r.pods {
		if ready {
			pods++
		}
	}
	return clusters, pods
}
