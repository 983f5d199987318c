package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/deploy/tree"
)

// settle is how long to gather events before looking: a change comes as a burst
// of them.
const settle = 50 * time.Millisecond

// Follow watches the objects of a namespace and calls see with their trees
// whenever something changed, until it says that it has seen enough or the
// context ends; then the error wraps the context's.
func (s *Session) Follow(ctx context.Context, namespace string, see func([]*tree.Node) (enough bool)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c, err := cache.New(s.Config, cache.Options{Scheme: s.scheme, DefaultNamespaces: map[string]cache.Config{namespace: {}}})
	if err != nil {
		return fmt.Errorf("watch namespace %s: %w", namespace, err)
	}
	changed := make(chan struct{}, 1)
	watched := []client.Object{&v1alpha1.TidbCluster{}, &v1alpha1.Instance{}}
	for _, component := range v1alpha1.ComponentTable() {
		watched = append(watched, component.New())
	}
	for _, kind := range watched {
		informer, err := c.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watch namespace %s: %w", namespace, err)
		}
		if _, err := informer.AddEventHandler(notifyHandler(changed)); err != nil {
			return fmt.Errorf("watch namespace %s: %w", namespace, err)
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Start(ctx) }()
	if !c.WaitForCacheSync(ctx) {
		return fmt.Errorf("watch namespace %s: %w", namespace, context.Cause(ctx))
	}
	for {
		objects, err := readObjects(ctx, c)
		if err != nil {
			return err
		}
		if see(tree.Build(objects)) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("follow namespace %s: %w", namespace, context.Cause(ctx))
		case err := <-ended:
			return errors.Join(fmt.Errorf("watch of namespace %s ended", namespace), err)
		case <-changed:
		}
		burst := time.NewTimer(settle)
		select {
		case <-ctx.Done():
			burst.Stop()
		case <-burst.C:
		}
	}
}

// Trees reads the objects of a namespace once.
func (s *Session) Trees(ctx context.Context, namespace string) ([]*tree.Node, error) {
	objects, err := readObjects(ctx, s.Client, client.InNamespace(namespace))
	return tree.Build(objects), err
}

func notifyHandler(changed chan<- struct{}) toolscache.ResourceEventHandler {
	signal := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { signal() },
		UpdateFunc: func(any, any) { signal() },
		DeleteFunc: func(any) { signal() },
	}
}

func readObjects(ctx context.Context, r client.Reader, options ...client.ListOption) (tree.Objects, error) {
	var o tree.Objects
	var clusters v1alpha1.TidbClusterList
	var instances v1alpha1.InstanceList
	lists := []client.ObjectList{&clusters, &instances}
	for _, component := range v1alpha1.ComponentTable() {
		lists = append(lists, component.NewList())
	}
	for _, list := range lists {
		if err := r.List(ctx, list, options...); err != nil {
			return o, fmt.Errorf("list objects: %w", err)
		}
		o.Groups = append(o.Groups, v1alpha1.GroupsIn(list)...)
	}
	o.Clusters, o.Instances = clusters.Items, instances.Items
	return o, nil
}
