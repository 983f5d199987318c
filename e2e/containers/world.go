package containers

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/e2e/objects"
	"github.com/tidb-groups/tidb-groups/e2e/provider"
	"github.com/tidb-groups/tidb-groups/e2e/rig"
	"github.com/tidb-groups/tidb-groups/e2e/scenario"
	"github.com/tidb-groups/tidb-groups/e2e/session"
)

// World is one namespace of a cluster that a provider has brought up, seen from the
// moment at which it was opened.
type World struct {
	namespace string
	provider  provider.Provider
	session   *session.Session
	watcher   *rig.Watcher
	user      client.Client
	stop      context.CancelFunc

	lock sync.Mutex
	// clusters are the IDs that each PDGroup has had.
	clusters map[string]map[string]bool
}

// Open watches a namespace that exists, until Close.
func Open(ctx context.Context, p provider.Provider, s *session.Session, namespace string) (*World, error) {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	watcher, err := rig.WatchNamespace(ctx, s.Config, namespace)
	if err != nil {
		stop()
		return nil, fmt.Errorf("open world %s: %w", namespace, err)
	}
	return &World{namespace: namespace, provider: p, session: s, watcher: watcher, user: watcher.Follow(s.Client), stop: stop, clusters: map[string]map[string]bool{}}, nil
}

// Close ends the watch. The namespace stays.
func (w *World) Close() { w.stop() }

// Kind implements scenario.World.
func (w *World) Kind() string { return scenario.Containers }

// Namespace implements scenario.World.
func (w *World) Namespace() string { return w.namespace }

// User implements scenario.World.
func (w *World) User() client.Client { return w.user }

// Await implements scenario.World.
func (w *World) Await(ctx context.Context, holds func(objects.Set) error) error {
	return w.watcher.Await(ctx, func(o objects.Set) error {
		w.note(o)
		return holds(o)
	})
}

// note keeps the cluster ID of each PDGroup.
func (w *World) note(o objects.Set) {
	w.lock.Lock()
	defer w.lock.Unlock()
	for _, name := range o.Names(v1alpha1.KindPDGroup, "") {
		id, _, _ := unstructured.NestedString(o.Get(v1alpha1.KindPDGroup, name).Object, "status", "clusterID")
		if id == "" {
			continue
		}
		if w.clusters[name] == nil {
			w.clusters[name] = map[string]bool{}
		}
		w.clusters[name][id] = true
	}
}

// Consent implements scenario.World.
func (w *World) Consent(claims ...string) { w.watcher.Consent(claims...) }

// Observed implements scenario.World. How leaders stood when a process ended, what
// TiDB was told and who asked the API server for what is not known here.
func (w *World) Observed() scenario.Observed {
	w.watcher.Now(w.note)
	out := scenario.Observed{
		UIDs: w.watcher.UIDs(), Bootstraps: map[string]int{}, Violations: w.watcher.Violations(), Versions: w.watcher.Versions(),
	}
	w.lock.Lock()
	defer w.lock.Unlock()
	for name, ids := range w.clusters {
		out.Bootstraps[name] = len(ids)
	}
	return out
}

// StartOperators implements scenario.World. Operators serve the whole cluster.
func (w *World) StartOperators(ctx context.Context, names ...string) error {
	for _, name := range names {
		if err := w.session.ScaleOperator(ctx, name, 1); err != nil {
			return err
		}
	}
	return nil
}

// StopOperators implements scenario.World.
func (w *World) StopOperators(ctx context.Context, names ...string) error {
	for _, name := range names {
		if err := w.session.ScaleOperator(ctx, name, 0); err != nil {
			return err
		}
	}
	return nil
}

// LoseNode implements scenario.World.
func (w *World) LoseNode(ctx context.Context, node string) error {
	return onNode(w.provider, func(n provider.Nodes) error { return n.StopNode(ctx, node) })
}

// RecoverNode implements scenario.World.
func (w *World) RecoverNode(ctx context.Context, node string) error {
	return onNode(w.provider, func(n provider.Nodes) error { return n.StartNode(ctx, node) })
}

// FillDisk implements scenario.World.
func (w *World) FillDisk(ctx context.Context, node string) error {
	return onNode(w.provider, func(d provider.Disks) error { return d.FillDisk(ctx, node) })
}

// FreeDisk implements scenario.World.
func (w *World) FreeDisk(ctx context.Context, node string) error {
	return onNode(w.provider, func(d provider.Disks) error { return d.FreeDisk(ctx, node) })
}

// onNode does what only some providers can.
func onNode[T any](p provider.Provider, do func(T) error) error {
	able, ok := p.(T)
	if !ok {
		return scenario.ErrNotHere
	}
	return do(able)
}

// Replicate implements scenario.World: there is no TiFlash that keeps anything.
func (w *World) Replicate(context.Context, string, int, int) error { return scenario.ErrNotHere }

// Folders implements scenario.World.
func (w *World) Folders(context.Context, string) ([]string, error) { return nil, scenario.ErrNotHere }

// Describe renders every object of the suite's own kinds, a line each.
func (w *World) Describe() string {
	var out strings.Builder
	w.watcher.Now(func(o objects.Set) {
		for _, key := range o.Keys() {
			if o.Get(key.Kind, key.Name).GroupVersionKind().Group == v1alpha1.GroupName {
				fmt.Fprintln(&out, objects.Describe(o.Get(key.Kind, key.Name)))
			}
		}
	})
	return out.String()
}
