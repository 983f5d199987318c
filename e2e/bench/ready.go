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
	when    AdapterReady
	changed chan struct{}

	lock sync.Mutex
	// clusters are those that are awaited, by the names of the objects that are looked at.
	clusters map[string]bool
	pods     map[string]bool
}

// newReadiness awaits clusters.
func newReadiness(when AdapterReady, clusters []clusterObjects) *readiness {
	r := &readiness{when: when, changed: make(chan struct{}, 1), clusters: map[string]bool{}, pods: map[string]bool{}}
	for _, c := range clusters {
		r.clusters[c.looked.GetName()] = false
	}
	return r
}

// watchReady watches the objects of clusters, of which there is at least one, and the pods of
// their namespace.
func watchReady(ctx context.Context, config *rest.Config, when AdapterReady, clusters []clusterObjects) (*readiness, error) {
	one := clusters[0].looked
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
	r := newReadiness(when, clusters)
	informers := dynamicinformer.NewFilteredDynamicSharedInformerFactory(reader, 0, one.GetNamespace(), nil)
	pods := corev1.SchemeGroupVersion.WithResource("pods")
	for resource, note := range map[toolscache.SharedIndexInformer]func(*unstructured.Unstructured, bool){
		informers.ForResource(mapping.Resource).Informer(): r.noteCluster,
		informers.ForResource(pods).Informer():             func(o *unstructured.Unstructured, there bool) { r.pods[o.GetName()] = there && isPodReady(o) },
	} {
		if _, err := resource.AddEventHandler(r.handler(note)); err != nil {
			return nil, fmt.Errorf("watch clusters: %w", err)
		}
	}
	informers.Start(ctx.Done())
	return r, nil
}

// noteCluster notes an object of the kind that is looked at. An operator may make more of it.
func (r *readiness) noteCluster(o *unstructured.Unstructured, there bool) {
	if _, awaited := r.clusters[o.GetName()]; awaited {
		r.clusters[o.GetName()] = there && r.when.isReady(o)
	}
}

// handler notes each version of an object.
func (r *readiness) handler(note func(o *unstructured.Unstructured, there bool)) toolscache.ResourceEventHandler {
	return objects.NewHandler(func(o *unstructured.Unstructured, there bool) {
		r.lock.Lock()
		defer r.lock.Unlock()
		note(o, there)
		select {
		case r.changed <- struct{}{}:
		default: // one look will do for both
		}
	})
}

// await waits until all clusters, and the pods of so many, are ready.
func (r *readiness) await(ctx context.Context) error {
	for {
		have, pods := r.count()
		if have >= len(r.clusters) && pods >= len(r.clusters)*r.when.Pods {
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
