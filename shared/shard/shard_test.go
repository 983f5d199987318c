package shard

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/testkit/controlplane"
)

// waitFor and tick bound the wait for what is learned by watching.
const (
	waitFor = time.Minute
	tick    = 20 * time.Millisecond
)

var plane *controlplane.ControlPlane // what TestMain hands to the tests

func TestMain(m *testing.M) {
	os.Exit(controlplane.Main(m, controlplane.Options{}, func(cp *controlplane.ControlPlane) { plane = cp }))
}

// label gives a namespace a shard, or takes it away.
func label(t *testing.T, c client.Client, name, shard string) {
	t.Helper()
	value := `null`
	if shard != "" {
		value = `"` + shard + `"`
	}
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"`+v1alpha1.LabelShard+`":`+value+`}}}`))
	require.NoError(t, c.Patch(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, patch))
}

// P12: a run has the namespaces with the label; the next one has others, and what was
// released is told.
func TestP12AnOperatorRunsForTheNamespacesOfItsShard(t *testing.T) {
	c, err := client.New(plane.Config, client.Options{})
	require.NoError(t, err)
	shop, err := controlplane.NewNamespace(t.Context(), c, "shop", map[string]string{v1alpha1.LabelShard: "a"})
	require.NoError(t, err)
	blog, err := controlplane.NewNamespace(t.Context(), c, "blog", nil)
	require.NoError(t, err)
	_, err = controlplane.NewNamespace(t.Context(), c, "others", map[string]string{v1alpha1.LabelShard: "b"})
	require.NoError(t, err)

	ctx, cancel := context.WithCancel(t.Context())
	events, err := kubernetes.NewForConfig(plane.Config)
	require.NoError(t, err)
	watched, err := watchNamespaces(ctx, plane.Config, "a")
	require.NoError(t, err)
	runs, ended := make(chan *Scope), make(chan error, 1)
	waits, over := make(chan time.Duration), make(chan time.Time) // a run lasts until the test says that its time is over
	after := func(d time.Duration) <-chan time.Time { waits <- d; return over }
	began := time.Now()
	go func() {
		ended <- Of{Shard: "a", Operator: "pdgroup", after: after}.serveNamespaces(ctx, events, watched, func(ctx context.Context, s *Scope) error {
			runs <- s
			<-ctx.Done()
			return nil
		})
	}()
	first := <-runs
	assert.Equal(t, []string{shop}, first.Namespaces())
	reconciled := func(s *Scope, namespace string) bool {
		done := false
		_, err := s.Gate(reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
			done = true
			return reconcile.Result{}, nil
		})).Reconcile(ctx, of(namespace))
		return done && err == nil
	}
	assert.True(t, reconciled(first, shop))

	label(t, c, shop, "")
	assert.Eventually(t, func() bool { return !reconciled(first, shop) }, waitFor, tick, "at once, and not when the next run begins")
	assert.GreaterOrEqual(t, <-waits+time.Since(began), shortest, "a run lasts for some time, whatever changes")
	label(t, c, blog, "a")
	label(t, c, shop, "a")
	require.Eventually(t, func() bool {
		watched.lock.Lock()
		defer watched.lock.Unlock()
		return watched.names[blog] && watched.names[shop]
	}, waitFor, tick)
	over <- time.Now()
	second := <-runs
	assert.ElementsMatch(t, []string{blog, shop}, second.Namespaces(), "labels that are set together are one change")
	assert.False(t, reconciled(first, shop), "what has left comes back in the next run only")
	assert.True(t, reconciled(second, blog))

	label(t, c, blog, "b")
	assert.GreaterOrEqual(t, <-waits, gather)
	over <- time.Now()
	third := <-runs
	assert.Equal(t, []string{shop}, third.Namespaces())
	told := func(namespace string) (out []string) {
		var list eventsv1.EventList
		require.NoError(t, c.List(t.Context(), &list, client.InNamespace(namespace)))
		for _, e := range list.Items {
			out = append(out, e.Reason+": "+e.Note)
		}
		return out
	}
	assert.Equal(t, []string{"ReleasedByShard: the pdgroup operator of shard a no longer acts in this namespace"}, told(blog))
	cancel()
	require.NoError(t, <-ended)
	assert.Len(t, told(shop), 1, "an operator that ends releases nothing: it begins again")
}

func TestAnOperatorThatFailsEndsItsProcess(t *testing.T) {
	o := Of{Shard: "c", Operator: "pdgroup"}
	err := o.Serve(t.Context(), plane.Config, func(context.Context, *Scope) error { return errors.New("lease lost") })
	require.EqualError(t, err, "lease lost")
	err = o.Serve(t.Context(), plane.Config, func(context.Context, *Scope) error { return nil })
	require.EqualError(t, err, "run shard c: the operator has ended")
}

func TestAMissingRightToWatchNamespacesNamesTheComponentThatGrantsIt(t *testing.T) {
	config := rest.CopyConfig(plane.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "no-rights"}
	err := Of{Shard: "a", Operator: "pdgroup"}.Serve(t.Context(), config, func(context.Context, *Scope) error { return nil })
	require.ErrorContains(t, err, "run shard a: list namespaces with label groups.tidb.dev/shard=a")
	require.ErrorContains(t, err, "name the operators' namespace in ClusterRoleBinding tidb-groups-shards")
	assert.True(t, apierrors.IsForbidden(err))
}
