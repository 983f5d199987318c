package shard

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// namespaces are those with the label, as the API server tells.
type namespaces struct {
	// changed has a value when they are others than those of the newest scope.
	changed chan struct{}

	lock   sync.Mutex
	names  map[string]bool
	newest *Scope
}

// watchNamespaces begins to watch the namespaces of a shard, names only, and returns when all are known.
func watchNamespaces(ctx context.Context, cfg *rest.Config, shard string) (*namespaces, error) {
	client, err := metadata.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("watch namespaces: %w", err)
	}
	selector := labels.SelectorFromSet(labels.Set{v1alpha1.LabelShard: shard}).String()
	asked, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	resource := corev1.SchemeGroupVersion.WithResource("namespaces")
	if _, err := client.Resource(resource).List(asked, metav1.ListOptions{LabelSelector: selector, Limit: 1}); err != nil {
		if apierrors.IsForbidden(err) {
			err = fmt.Errorf("%w: name the operators' namespace in ClusterRoleBinding tidb-groups-shards", err)
		}
		return nil, fmt.Errorf("list namespaces with label %s: %w", selector, err)
	}
	n := &namespaces{changed: make(chan struct{}, 1), names: map[string]bool{}}
	informer := metadatainformer.NewFilteredMetadataInformer(client, resource, metav1.NamespaceAll, 0, toolscache.Indexers{}, func(o *metav1.ListOptions) { o.LabelSelector = selector }).Informer()
	if err := informer.SetTransform(nameOnly); err != nil {
		return nil, fmt.Errorf("watch namespaces: %w", err)
	}
	handler, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { n.set(o, true) },
		DeleteFunc: func(o any) { n.set(o, false) },
	})
	if err != nil {
		return nil, fmt.Errorf("watch namespaces: %w", err)
	}
	go informer.RunWithContext(ctx)
	if !toolscache.WaitForCacheSync(asked.Done(), handler.HasSynced) {
		return nil, errors.Join(fmt.Errorf("watch namespaces with label %s: no answer within %s", selector, requestTimeout), context.Cause(asked))
	}
	return n, nil
}

// nameOnly keeps of a namespace what is used.
func nameOnly(in any) (any, error) {
	if o, ok := in.(*metav1.PartialObjectMetadata); ok {
		o.ObjectMeta = metav1.ObjectMeta{Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion}
	}
	return in, nil
}

// set notes whether a namespace has the label.
func (n *namespaces) set(object any, has bool) {
	name, err := toolscache.DeletionHandlingMetaNamespaceKeyFunc(object)
	if err != nil {
		return // no object, and so no name
	}
	n.lock.Lock()
	defer n.lock.Unlock()
	if n.names[name] == has {
		return
	}
	if has {
		n.names[name] = true
	} else {
		delete(n.names, name)
		if n.newest != nil {
			n.newest.removeNamespace(name)
		}
	}
	select {
	case n.changed <- struct{}{}:
	default: // it has one already
	}
}

// scope returns the scope of the next run.
func (n *namespaces) scope(ctx context.Context) *Scope {
	n.lock.Lock()
	defer n.lock.Unlock()
	select {
	case <-n.changed:
	default:
	}
	n.newest = newScope(ctx, slices.Collect(maps.Keys(n.names)))
	return n.newest
}
