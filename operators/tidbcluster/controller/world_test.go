package controller

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/conditions"
	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/testkit/controlplane"
	"github.com/tidb-groups/tidb-groups/shared/testkit/invariants"
)

// patience is what a condition gets on a machine that does much else; named is
// how soon a status must say what blocks.
const (
	patience = 20 * time.Second
	named    = 5 * time.Second
	tick     = 20 * time.Millisecond
)

// world is one namespace in which the operator runs; the test plays the
// groups' operators.
type world struct {
	*testing.T
	ctx       context.Context
	namespace string
	writes    *writes
}

// writes counts what the operator sends that is not a read.
type writes struct {
	mu    sync.Mutex
	calls []string
}

func (w *writes) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.Method != http.MethodGet {
			w.mu.Lock()
			w.calls = append(w.calls, r.Method+" "+r.URL.Path)
			w.mu.Unlock()
		}
		return next.RoundTrip(r)
	})
}

func (w *writes) list() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.calls)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// begin makes a namespace with a watcher of the
// status invariants, and starts the operator.
func begin(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, ctx: t.Context(), namespace: controlplane.Namespace(t, api), writes: &writes{}}
	w.operate()
	w.follow(&v1alpha1.TidbClusterList{}, func(client.Object) {})
	return w
}

// operate runs the operator until the returned function is called, or to the
// end of the test.
func (w *world) operate() (stop func()) {
	w.Helper()
	config := rest.CopyConfig(access)
	config.Wrap(w.writes.wrap)
	return w.start(config, operator.Flags{
		Namespaces: w.namespace, MetricsAddress: "0", ProbeAddress: "0", Concurrency: 2, ReconcileTimeout: time.Minute, ClientQPS: -1,
	})
}

func (w *world) start(config *rest.Config, flags operator.Flags) (stop func()) {
	w.Helper()
	ctx, cancel := context.WithCancel(background())
	manager, err := operator.NewManager(ctx, config, Definition(), flags, nil)
	require.NoError(w, err)
	done := make(chan error, 1)
	go func() { done <- manager.Start(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			assert.NoError(w, <-done)
		})
	}
	w.Cleanup(stop)
	return stop
}

// follow hands every version of the objects of a kind to do, and checks the
// invariants of their status.
func (w *world) follow(list client.ObjectList, do func(client.Object)) {
	w.Helper()
	ctx, cancel := context.WithCancel(background())
	watch, err := api.Watch(ctx, list, client.InNamespace(w.namespace))
	require.NoError(w, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for e := range watch.ResultChan() {
			o, ok := e.Object.(client.Object)
			if !ok || e.Type == "DELETED" {
				continue
			}
			fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
			if assert.NoError(w, err) {
				assert.Empty(w, invariants.Check(&unstructured.Unstructured{Object: fields}))
			}
			do(o)
		}
	}()
	w.Cleanup(func() {
		cancel()
		watch.Stop()
		<-done
	})
}

// say writes what a group's operator says of it: Ready and UpToDate, or the end
// of a reconcile that got less far.
func (w *world) say(g v1alpha1.Group, end step.Outcome) {
	w.Helper()
	require.NoError(w, api.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: g.GetName()}, g))
	set := conditions.New(nil, g.GetGeneration(), time.Now())
	set.Finish(conditions.Verdict{Serving: end.Kind == step.KindDone, Summary: "all Instances are ready", Outcome: end})
	status := g.GetGroupStatus()
	status.Conditions, status.ReadyReplicas = set.List(), g.GetReplicas()
	switch x := g.(type) {
	case *v1alpha1.PDGroup:
		x.Status.ClusterID = "73"
	case *v1alpha1.TiDBGroup:
		x.Status.Endpoint = "basic-tidb:4000"
	}
	require.NoError(w, api.Status().Update(w.ctx, g))
}

// groups reads the groups, as kind and name.
func (w *world) groups() map[string]v1alpha1.Group {
	w.Helper()
	out := map[string]v1alpha1.Group{}
	for _, list := range []client.ObjectList{&v1alpha1.PDGroupList{}, &v1alpha1.TiKVGroupList{}, &v1alpha1.TiDBGroupList{}, &v1alpha1.TiFlashGroupList{}} {
		require.NoError(w, api.List(w.ctx, list, client.InNamespace(w.namespace)))
		for _, g := range v1alpha1.GroupsIn(list) {
			out[g.GroupKind()+" "+g.GetName()] = g
		}
	}
	return out
}

// sample is the TidbCluster of deploy/samples/basic.yaml.
func sample(t require.TestingT, namespace string, changes ...func(*v1alpha1.TidbCluster)) *v1alpha1.TidbCluster {
	text, err := os.ReadFile("../../../deploy/samples/basic.yaml")
	require.NoError(t, err)
	c := &v1alpha1.TidbCluster{}
	require.NoError(t, yaml.UnmarshalStrict(text, c))
	c.Namespace = namespace
	for _, change := range changes {
		change(c)
	}
	return c
}

// create creates a TidbCluster.
func (w *world) create(changes ...func(*v1alpha1.TidbCluster)) {
	w.Helper()
	require.NoError(w, api.Create(w.ctx, sample(w, w.namespace, changes...)))
}

// get reads the TidbCluster.
func (w *world) get() *v1alpha1.TidbCluster {
	w.Helper()
	g := &v1alpha1.TidbCluster{}
	require.NoError(w, api.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: "basic"}, g))
	return g
}

// edit changes the spec as a user does.
func (w *world) edit(change func(*v1alpha1.TidbCluster)) {
	w.Helper()
	require.Eventually(w, func() bool {
		g := w.get()
		change(g)
		err := api.Update(w.ctx, g)
		if err != nil && !apierrors.IsConflict(err) {
			require.NoError(w, err)
		}
		return err == nil
	}, patience, tick)
}

// touch wakes the operator up without changing the spec.
func (w *world) touch(note string) {
	w.Helper()
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{"note":%q}}}`, note))
	require.NoError(w, api.Patch(w.ctx, w.get(), patch))
}

// condition describes a condition of the cluster at its current generation, as
// Status/Reason.
func condition(g *v1alpha1.TidbCluster, kind string) string {
	c := meta.FindStatusCondition(g.Status.Conditions, kind)
	switch {
	case c == nil:
		return "none"
	case c.ObservedGeneration != g.Generation:
		return "old"
	}
	return string(c.Status) + "/" + c.Reason
}

// within waits for a condition to be as wanted.
func (w *world) within(d time.Duration, kind, want string) *v1alpha1.TidbCluster {
	w.Helper()
	var g *v1alpha1.TidbCluster
	require.EventuallyWithT(w, func(c *assert.CollectT) {
		g = w.get()
		assert.Equal(c, want, condition(g, kind), "%s: %s", kind, dump(g.Status.Conditions))
	}, d, tick)
	return g
}

// converged waits until the cluster is as asked for.
func (w *world) converged() *v1alpha1.TidbCluster {
	w.Helper()
	w.within(patience, v1alpha1.ConditionUpToDate, "True/UpToDate")
	return w.within(patience, v1alpha1.ConditionReady, "True/Ready")
}

func dump(conditions []metav1.Condition) string {
	var out []string
	for _, c := range conditions {
		out = append(out, fmt.Sprintf("%s=%s/%s@%d: %s", c.Type, c.Status, c.Reason, c.ObservedGeneration, c.Message))
	}
	return strings.Join(out, "\n")
}

// versions returns the resourceVersion of everything in the namespace that the
// operator may write.
func (w *world) versions() map[string]string {
	w.Helper()
	out := map[string]string{}
	for _, kind := range []string{"TidbCluster", "PDGroup", "TiKVGroup", "TiDBGroup", "TiFlashGroup"} {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(v1alpha1.GroupVersion().String())
		list.SetKind(kind + "List")
		require.NoError(w, api.List(w.ctx, list, client.InNamespace(w.namespace)))
		for _, o := range list.Items {
			out[kind+" "+o.GetName()] = o.GetResourceVersion()
		}
	}
	return out
}
