package installation_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/e2e/rig"
	"github.com/tidb-groups/tidb-groups/shared/shard"
)

// set is the part of an installation that one set of operators is, by its namespace.
func (in *installed) set(namespace string) *installed {
	out := &installed{t: in.t, admin: in.admin, hosts: map[string]string{}}
	for _, o := range in.objects {
		if o.GetNamespace() == namespace {
			out.objects = append(out.objects, o)
		}
	}
	return out
}

// label gives a namespace to a shard; to none if that is empty.
func (in *installed) label(namespace, name string) {
	in.t.Helper()
	value := "null"
	if name != "" {
		value = `"` + name + `"`
	}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"`+v1alpha1.LabelShard+`":`+value+`}}}`))
	require.NoError(in.t, in.admin.Patch(in.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, patch))
}

// releases are the operators that have said that they act in a namespace no more.
func (in *installed) releases(namespace string) []string {
	in.t.Helper()
	var list eventsv1.EventList
	require.NoError(in.t, in.admin.List(in.t.Context(), &list, client.InNamespace(namespace)))
	var out []string
	for _, e := range list.Items {
		if e.Reason == shard.ReasonReleased {
			out = append(out, e.ReportingInstance)
		}
	}
	slices.Sort(out)
	return out
}

// P12: each of two sets of operators acts in the namespaces with its label only, and a namespace goes from one
// to the other without a pod being restarted.
func TestP12SetsOfOperatorsDivideTheNamespaces(t *testing.T) {
	refused := len(journal.Refusals())
	other := rig.New(t, plane, options("other"))
	var a, b *installed
	with := options("shop")
	with.Installed = func(ctx context.Context, name string) (rig.Process, error) { return a.process(ctx, name) }
	shop := rig.New(t, plane, with)
	with = options("blog")
	with.Neighbours = []*rig.Rig{shop.Rig}
	with.Installed = func(ctx context.Context, name string) (rig.Process, error) { return b.process(ctx, name) }
	blog := rig.New(t, plane, with)
	overlay := func(name string) map[string]string {
		return map[string]string{"kustomization.yaml": "resources: [DEPLOY/overlays/" + name + "]\n"}
	}
	in := install(t, overlay("shards"), overlay("shards/a"), overlay("shards/b"))
	a, b = in.set("tidb-groups-a"), in.set("tidb-groups-b")
	for _, set := range []*installed{a, b} {
		set.awaitPolicies(shop.Namespace())
	}
	in.label(shop.Namespace(), "a")
	in.label(blog.Namespace(), "b")
	for _, r := range []*rig.Test{other, shop, blog} {
		r.Apply(parse[v1alpha1.TidbCluster](t, cluster))
	}
	shop.Start(rig.Operators()...)
	blog.Start(rig.Operators()...)
	shop.AwaitConverged(whole())
	blog.AwaitConverged(whole())
	a.awaitReady()
	b.awaitReady()
	for _, name := range a.programs() {
		assert.Contains(t, in.leases(), "tidb-groups-a/tidb-groups-"+name+"-a")
		assert.Contains(t, in.leases(), "tidb-groups-b/tidb-groups-"+name+"-b")
	}
	assert.Zero(t, shop.Requests.WritesIn(blog.Namespace()))
	assert.Zero(t, blog.Requests.WritesIn(shop.Namespace()))

	in.label(shop.Namespace(), "")
	acted := []string{"tidb-groups-instance-a", "tidb-groups-pdgroup-a", "tidb-groups-tidbcluster-a", "tidb-groups-tidbgroup-a", "tidb-groups-tikvgroup-a"}
	require.EventuallyWithT(t, func(c *assert.CollectT) { assert.Equal(c, acted, in.releases(shop.Namespace())) }, rig.Timeout, tick)
	before := shop.Requests.WritesIn(shop.Namespace())
	more := parse[v1alpha1.TidbCluster](t, cluster)
	more.Spec.TiKV[0].Replicas = ptr.To[int32](4)
	shop.Apply(more)
	in.label(shop.Namespace(), "b")
	shop.Await(rig.Timeout, "a fourth store", func(o rig.Objects) error {
		if have := o.Names("Pod", "small-tikv-"); !assert.ObjectsAreEqual(stores(), have) {
			return fmt.Errorf("there is %v", have)
		}
		return errors.Join(o.Converged(whole().Kind, whole().Name), o.AllConverged())
	})
	assert.Equal(t, before, shop.Requests.WritesIn(shop.Namespace()), "the first set has released it for good")
	assert.Positive(t, blog.Requests.WritesIn(shop.Namespace()))
	shop.PodsUnchanged()
	blog.PodsUnchanged()

	in.unlabelled(other, shop, blog)
	a.nothingRefused(shop, refused)
	b.nothingRefused(blog, refused)
}

// unlabelled checks that no set has acted in a namespace without the label.
func (in *installed) unlabelled(other *rig.Test, sets ...*rig.Test) {
	in.t.Helper()
	other.Watcher.Now(func(o rig.Objects) { assert.NoError(in.t, untouched(o, whole())) })
	for _, set := range sets {
		assert.Zero(in.t, set.Requests.WritesIn(other.Namespace()))
	}
}
