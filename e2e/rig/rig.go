package rig

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/e2e/model"
	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/testkit/controlplane"
)

// Patience is how long a rig waits for what must come, on a machine that does
// much else.
const Patience = 60 * time.Second

// Options shape a rig. The zero value will do.
type Options struct {
	// Delays of the simulated world.
	Delays Delays
	// Tolerate are alarms that the test itself is the cause of.
	Tolerate []model.AlarmKind
	// ClusterWide lets the operators watch all namespaces, and the nodes.
	ClusterWide bool
	// Silence is how long an operator may say nothing about a change; 5 s if 0. A
	// test that asks for more at once than a small machine can do gives it more.
	Silence time.Duration
}

// Rig is one namespace with a simulated world around it, and the operators that
// the test starts.
type Rig struct {
	// Namespace of the rig.
	Namespace string
	// Client has full access; what it does is the user's doing.
	Client client.Client
	// Databases are the simulated databases.
	Databases *Databases
	// Watcher sees all that happens.
	Watcher *Watcher
	// Requests of the operators.
	Requests *Requests

	t       testing.TB
	ctx     context.Context
	plane   *controlplane.ControlPlane
	options Options

	mu        sync.Mutex
	operators map[string]*running
}

// New returns a rig for one test, which its end closes and judges.
func New(t testing.TB, plane *controlplane.ControlPlane, options Options) *Rig {
	t.Helper()
	scheme, err := operator.NewScheme()
	require.NoError(t, err)
	c, err := client.New(plane.Config, client.Options{Scheme: scheme})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	r := &Rig{
		Namespace: controlplane.Namespace(t, c),
		Client:    c, Databases: newDatabases(ctx), Requests: &Requests{counts: map[Request]int{}},
		t: t, ctx: ctx, plane: plane, options: options, operators: map[string]*running{},
	}
	require.NoError(t, world(ctx, c))
	r.Watcher, err = watchNamespace(ctx, plane.Config, r.Namespace, cmp.Or(options.Silence, reasonDeadline))
	require.NoError(t, err)
	a := &actor{databases: r.Databases, addresses: newAddresses(), delays: options.Delays, fail: func(err error) { r.Watcher.violate("pod actor: %v", err) }}
	t.Cleanup(func() {
		r.Stop(r.Running()...)
		r.judge()
		if options.ClusterWide {
			assert.NoError(t, r.wipe())
		}
		cancel()
		assert.NoError(t, a.close())
	})
	require.NoError(t, newActor(ctx, plane.Config, r.Namespace, a))
	return r
}

// wipe removes what operators of other rigs would find and take for theirs.
// Nobody is there any more to take finalizers off.
func (r *Rig) wipe() error {
	ctx, cancel := context.WithTimeout(r.ctx, Patience)
	defer cancel()
	here := client.InNamespace(r.Namespace)
	for _, kind := range []client.Object{
		&v1alpha1.TidbCluster{}, &v1alpha1.PDGroup{}, &v1alpha1.TiKVGroup{}, &v1alpha1.TiDBGroup{}, &v1alpha1.TiFlashGroup{},
		&v1alpha1.Instance{},
	} {
		if err := r.Client.DeleteAllOf(ctx, kind, here); err != nil {
			return fmt.Errorf("delete all %T: %w", kind, err)
		}
	}
	instances := &v1alpha1.InstanceList{}
	if err := r.Client.List(ctx, instances, here); err != nil {
		return fmt.Errorf("list Instances: %w", err)
	}
	for i := range instances.Items {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		if err := r.Client.Patch(ctx, &instances.Items[i], patch); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("take finalizers off Instance %s: %w", instances.Items[i].Name, err)
		}
	}
	if err := r.Client.DeleteAllOf(ctx, &corev1.Pod{}, here, client.GracePeriodSeconds(0)); err != nil {
		return fmt.Errorf("delete all pods: %w", err)
	}
	return nil
}

// judge fails the test for every violation and alarm.
func (r *Rig) judge() {
	for _, violation := range r.Watcher.Violations() {
		r.t.Errorf("violation: %s", violation)
	}
	for _, alarm := range r.Alarms() {
		r.t.Errorf("alarm: %s", alarm)
	}
	if r.t.Failed() {
		r.Watcher.Now(func(o Objects) {
			for _, key := range o.Keys() {
				r.t.Log(Describe(o.Get(key.Kind, key.Name)))
			}
		})
	}
}

// Alarms returns the alarms that the test did not say it would cause.
func (r *Rig) Alarms() []model.Alarm {
	var out []model.Alarm
	for _, db := range r.Databases.List() {
		for _, alarm := range db.Alarms() {
			if !slices.Contains(r.options.Tolerate, alarm.Kind) {
				out = append(out, alarm)
			}
		}
	}
	return out
}

// Start starts operators, in the given order.
func (r *Rig) Start(names ...string) {
	r.t.Helper()
	namespace := r.Namespace
	if r.options.ClusterWide {
		namespace = ""
	}
	for _, name := range names {
		d, err := definition(name)
		require.NoError(r.t, err)
		started, err := launch(r.ctx, r.plane.Config, d, flags(namespace), r.Requests, r.Databases.Dialer())
		require.NoError(r.t, err)
		r.mu.Lock()
		r.operators[name] = started
		r.mu.Unlock()
		r.Watcher.running(name, true)
	}
}

// Stop stops operators gracefully, all at the same time.
func (r *Rig) Stop(names ...string) {
	r.t.Helper()
	var stopping sync.WaitGroup
	for _, name := range names {
		r.Watcher.running(name, false)
		r.mu.Lock()
		started := r.operators[name]
		delete(r.operators, name)
		r.mu.Unlock()
		if started == nil {
			continue
		}
		stopping.Go(func() { assert.NoError(r.t, started.stop(), "stop the %s operator", name) })
	}
	stopping.Wait()
}

// Running returns the names of the operators that run.
func (r *Rig) Running() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.operators))
}

// Apply creates or changes objects as a user does with kubectl apply.
func (r *Rig) Apply(objects ...client.Object) {
	r.t.Helper()
	for _, object := range objects {
		require.NoError(r.t, r.TryApply(object), "apply %T %s", object, object.GetName())
	}
}

// TryApply is Apply for what may be refused.
func (r *Rig) TryApply(object client.Object) error {
	ctx, cancel := context.WithTimeout(r.ctx, Patience)
	defer cancel()
	copied, ok := object.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("copy %T: not an object", object)
	}
	copied.SetNamespace(r.Namespace)
	copied.SetManagedFields(nil)
	copied.SetResourceVersion("")
	gvk, err := apiutil.GVKForObject(copied, r.Client.Scheme())
	if err != nil {
		return fmt.Errorf("find kind of %T: %w", object, err)
	}
	copied.GetObjectKind().SetGroupVersionKind(gvk)
	return r.Client.Patch(ctx, copied, client.Apply, client.FieldOwner("user"), client.ForceOwnership) //nolint:staticcheck // the typed apply needs generated types
}

// Delete deletes an object as a user does, and does not wait.
func (r *Rig) Delete(object client.Object, options ...client.DeleteOption) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.ctx, Patience)
	defer cancel()
	object.SetNamespace(r.Namespace)
	require.NoError(r.t, client.IgnoreNotFound(r.Client.Delete(ctx, object, options...)))
}

// Get reads an object.
func (r *Rig) Get(object client.Object, name string) error {
	ctx, cancel := context.WithTimeout(r.ctx, Patience)
	defer cancel()
	return r.Client.Get(ctx, types.NamespacedName{Namespace: r.Namespace, Name: name}, object)
}

// Await waits until a condition over all objects holds, and fails the test when
// it takes longer than patience. It returns how long it took.
func (r *Rig) Await(patience time.Duration, what string, holds func(Objects) error) time.Duration {
	r.t.Helper()
	return r.AwaitFor(r.t, patience, what, holds)
}

// AwaitFor is Await that fails a test of its own, a part of the rig's.
func (r *Rig) AwaitFor(t testing.TB, patience time.Duration, what string, holds func(Objects) error) time.Duration {
	t.Helper()
	ctx, cancel := context.WithTimeout(r.ctx, patience)
	defer cancel()
	begin := time.Now()
	require.NoError(t, r.Watcher.Await(ctx, holds), what)
	return time.Since(begin)
}

// AwaitConverged waits until an object exists and it and everything of the
// suite in the namespace is converged.
func (r *Rig) AwaitConverged(keys ...Key) time.Duration {
	r.t.Helper()
	return r.Await(Patience, "everything Ready and UpToDate", func(o Objects) error {
		for _, key := range keys {
			if err := o.Converged(key.Kind, key.Name); err != nil {
				return err
			}
		}
		return o.AllConverged()
	})
}

// PodsUnchanged fails the test if a pod of any name was ever replaced.
func (r *Rig) PodsUnchanged() {
	r.t.Helper()
	for name, uids := range r.Watcher.PodUIDs() {
		if len(uids) > 1 {
			r.t.Errorf("pod %s was replaced: %s", name, strings.Trim(fmt.Sprint(uids), "[]"))
		}
	}
}
