package rig

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/tidb-groups/tidb-groups/e2e/scenario"
	"github.com/tidb-groups/tidb-groups/shared/testkit/controlplane"
)

// alarmsShown is how many alarms a failure shows: each region has its own.
const alarmsShown = 5

// Test is a rig for one Go test, which fails when anything does.
type Test struct {
	*Rig
	t testing.TB
}

// Main is the body of a TestMain whose tests use rigs: it starts a control plane, hands it
// to ready and returns the exit code, which tells of operators that panicked too. Errors that
// operators log go to loud, nowhere if it is nil.
func Main(m *testing.M, loud io.Writer, ready func(*controlplane.ControlPlane)) int {
	journal := NewJournal(loud)
	options, err := PlaneOptions()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := controlplane.Main(m, options, ready)
	for _, p := range journal.Panics() {
		fmt.Fprintln(os.Stderr, "an operator panicked:", p)
		code = max(code, 1)
	}
	return code
}

// Loud is where operators log their errors to: standard output with $RIG_LOG, nowhere without.
func Loud() io.Writer {
	if os.Getenv("RIG_LOG") == "" {
		return nil
	}
	return os.Stdout
}

// Play runs a scenario, in which nothing bad may happen.
func Play(t *testing.T, plane *controlplane.ControlPlane, s scenario.Scenario, options Options) scenario.Result {
	t.Helper()
	r := New(t, plane, options.For(s))
	result, err := scenario.Run(t.Context(), r.Rig, s)
	require.NoError(t, err)
	assert.NoError(t, result.Bad())
	return result
}

// New returns a rig for one test, which its end closes and judges.
func New(t testing.TB, plane *controlplane.ControlPlane, options Options) *Test {
	t.Helper()
	options.Name = cmp.Or(options.Name, t.Name())
	if options.Remedies == nil {
		options.Remedies = NewKubectl()
	}
	opened, err := Open(context.WithoutCancel(t.Context()), plane, options)
	require.NoError(t, err)
	r := &Test{Rig: opened, t: t}
	t.Cleanup(func() {
		assert.NoError(t, r.StopOperators(r.ctx, r.Running()...))
		r.judge()
		assert.NoError(t, r.Close())
	})
	return r
}

// judge fails the test for every violation and alarm.
func (r *Test) judge() {
	for _, violation := range r.Watcher.Violations() {
		r.t.Errorf("violation: %s", violation)
	}
	alarms := r.Alarms()
	for _, alarm := range alarms[:min(len(alarms), alarmsShown)] {
		r.t.Errorf("alarm: %s", alarm)
	}
	if more := len(alarms) - alarmsShown; more > 0 {
		r.t.Errorf("and %d more alarms", more)
	}
	if r.t.Failed() {
		r.t.Log(r.Describe())
	}
}

// Start starts operators, in the given order.
func (r *Test) Start(names ...string) {
	r.t.Helper()
	require.NoError(r.t, r.StartOperators(r.ctx, names...))
}

// Stop stops operators gracefully, all at the same time.
func (r *Test) Stop(names ...string) {
	r.t.Helper()
	require.NoError(r.t, r.StopOperators(r.ctx, names...))
}

// Apply creates or changes objects as a user does with kubectl apply.
func (r *Test) Apply(objects ...client.Object) {
	r.t.Helper()
	for _, object := range objects {
		require.NoError(r.t, r.TryApply(object), "apply %T %s", object, object.GetName())
	}
}

// TryApply is Apply for what may be refused.
func (r *Test) TryApply(object client.Object) error {
	ctx, cancel := context.WithTimeout(r.ctx, Timeout)
	defer cancel()
	copied, ok := object.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("copy %T: not an object", object)
	}
	copied.SetNamespace(r.namespace)
	copied.SetManagedFields(nil)
	copied.SetResourceVersion("")
	gvk, err := apiutil.GVKForObject(copied, r.client.Scheme())
	if err != nil {
		return fmt.Errorf("find kind of %T: %w", object, err)
	}
	copied.GetObjectKind().SetGroupVersionKind(gvk)
	return r.user.Patch(ctx, copied, client.Apply, client.FieldOwner("user"), client.ForceOwnership) //nolint:staticcheck // the typed apply needs generated types
}

// Delete deletes an object as a user does, and does not wait.
func (r *Test) Delete(object client.Object, options ...client.DeleteOption) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.ctx, Timeout)
	defer cancel()
	object.SetNamespace(r.namespace)
	require.NoError(r.t, client.IgnoreNotFound(r.user.Delete(ctx, object, options...)))
}

// Get reads an object.
func (r *Test) Get(object client.Object, name string) error {
	ctx, cancel := context.WithTimeout(r.ctx, Timeout)
	defer cancel()
	return r.client.Get(ctx, types.NamespacedName{Namespace: r.namespace, Name: name}, object)
}

// Await waits until a condition over all objects holds, and fails the test when
// it takes longer than timeout. It returns how long it took.
func (r *Test) Await(timeout time.Duration, what string, holds func(Objects) error) time.Duration {
	r.t.Helper()
	return r.AwaitFor(r.t, timeout, what, holds)
}

// AwaitFor is Await that fails a test of its own, a part of the rig's.
func (r *Test) AwaitFor(t testing.TB, timeout time.Duration, what string, holds func(Objects) error) time.Duration {
	t.Helper()
	ctx, cancel := context.WithTimeout(r.ctx, timeout)
	defer cancel()
	begin := time.Now()
	require.NoError(t, r.Watcher.Await(ctx, holds), what)
	return time.Since(begin)
}

// AwaitConverged waits until an object exists and it and everything of the
// suite in the namespace is converged.
func (r *Test) AwaitConverged(keys ...Key) time.Duration {
	r.t.Helper()
	return r.Await(Timeout, "everything Ready and UpToDate", func(o Objects) error {
		for _, key := range keys {
			if err := o.Converged(key.Kind, key.Name); err != nil {
				return err
			}
		}
		return o.AllConverged()
	})
}

// PodsUnchanged fails the test if a pod of any name was ever replaced.
func (r *Test) PodsUnchanged() {
	r.t.Helper()
	for name, uids := range r.Watcher.UIDs() {
		if name.Kind == kindPod && len(uids) > 1 {
			r.t.Errorf("%s was replaced: %s", name, strings.Trim(fmt.Sprint(uids), "[]"))
		}
	}
}
