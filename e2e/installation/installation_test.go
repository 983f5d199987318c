package installation_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/e2e/model"
	"github.com/tidb-groups/tidb-groups/e2e/rig"
	"github.com/tidb-groups/tidb-groups/e2e/scenario"
	"github.com/tidb-groups/tidb-groups/shared/operator"
)

// system is where the overlays install the operators.
const system = "tidb-groups-system"

// cluster is small and may be restarted in turns.
const cluster = `
metadata: {name: small}
spec:
  version: v8.5.7
  pd: {replicas: 1, volumes: [{name: data, storage: 1Gi}]}
  tikv: [{replicas: 3, volumes: [{name: data, storage: 1Gi}]}]
  tidb: [{replicas: 1}]
`

func parse[T any](t *testing.T, text string) *T {
	t.Helper()
	out := new(T)
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), out))
	return out
}

// options of a namespace whose cluster may be deleted as a whole.
func options(name string) rig.Options {
	return rig.Options{
		Name: name, ReasonDeadline: rig.Timeout, Database: scenario.Database{Speed: 20, Regions: 6},
		Tolerate: []model.AlarmKind{model.LostPDMajority, model.LostRegionMajority},
	}
}

// SEC-02: operators that are installed for two namespaces do all their work there, and
// nothing in a third one, with no right that they have not.
func TestSEC02OperatorsActInTheNamespacesThatAreListed(t *testing.T) {
	refused := len(journal.Refusals())
	c, b := rig.New(t, plane, options("shop-c")), rig.New(t, plane, options("shop-b"))
	var in *installed
	with := options("shop-a")
	with.Neighbours = []*rig.Rig{b.Rig}
	with.Installed = func(ctx context.Context, name string) (rig.Process, error) { return in.process(ctx, name) }
	a := rig.New(t, plane, with)
	in = install(t, map[string]string{
		"kustomization.yaml": `
resources: [DEPLOY/overlays/default, a, b]
components: [DEPLOY/components/namespaces]
configMapGenerator:
- name: tidb-groups-namespaces
  namespace: ` + system + `
  literals: ["namespaces=` + a.Namespace() + `,` + b.Namespace() + `"]
`,
		"a/kustomization.yaml": "namespace: " + a.Namespace() + "\nresources: [DEPLOY/bases/namespace]\n",
		"b/kustomization.yaml": "namespace: " + b.Namespace() + "\nresources: [DEPLOY/bases/namespace]\n",
	})
	in.awaitPolicies(a.Namespace())

	strangers := []client.Object{
		parse[v1alpha1.TidbCluster](t, cluster),
		parse[v1alpha1.PDGroup](t, `{metadata: {name: lone}, spec: {version: v8.5.7, volumes: [{name: data, storage: 1Gi}]}}`),
		parse[v1alpha1.Instance](t, `{metadata: {name: lone-0}, spec: {group: {kind: PDGroup, name: lone}, slot: 0, revision: r, podTemplate: {spec: {containers: [{name: pd, image: "example.com/pd:1"}]}}}}`),
	}
	c.Apply(strangers...)
	a.Start(rig.Operators()...)
	b.Apply(parse[v1alpha1.TidbCluster](t, cluster))
	in.lifecycle(a, func() {
		b.AwaitConverged(whole())
		in.metricsAreReviewed(a.Namespace())
	}, roll)
	b.AwaitConverged(whole())
	b.PodsUnchanged()
	c.Watcher.Now(func(o rig.Objects) {
		assert.NoError(t, untouched(o, whole(), rig.Key{Kind: v1alpha1.KindPDGroup, Name: "lone"}, rig.Key{Kind: v1alpha1.KindInstance, Name: "lone-0"}))
	})
	in.nothingRefused(a, refused)
}

// SEC-02: operators in the namespace of their databases have roles there, and no other right at all.
func TestSEC02OperatorsActInTheirOwnNamespaceWithRolesAlone(t *testing.T) {
	refused := len(journal.Refusals())
	other := rig.New(t, plane, options("other"))
	var in *installed
	with := options("own")
	with.Installed = func(ctx context.Context, name string) (rig.Process, error) { return in.process(ctx, name) }
	own := rig.New(t, plane, with)
	in = install(t, map[string]string{"kustomization.yaml": `
namespace: ` + own.Namespace() + `
resources: [DEPLOY/overlays/default]
components: [DEPLOY/components/namespaced]
`})
	for _, o := range in.objects {
		assert.NotContains(t, []string{"ClusterRole", "ClusterRoleBinding"}, o.GetKind(), o.GetName())
	}
	in.awaitMembers(own.Namespace())

	other.Apply(parse[v1alpha1.TidbCluster](t, cluster))
	own.Start(rig.Operators()...)
	in.lifecycle(own, func() {
		for _, name := range in.programs() {
			assert.Equal(t, http.StatusOK, in.get("http://"+in.hosts[name]+":8443/metrics", ""), "the operator may not ask who a reader is: %s", name)
		}
	}, restartOne)
	other.Watcher.Now(func(o rig.Objects) { assert.NoError(t, untouched(o, whole())) })
	in.nothingRefused(own, refused)
}

// SEC-02: what overlays/default grants suffices in every namespace, and for nodes and volumes.
func TestSEC02OperatorsOfAllNamespacesNeedNoMoreThanTheirRoles(t *testing.T) {
	everywhere(t, "any", "default", rig.Operators())
}

// SEC-02: one process for all operators needs no more than the sum of their roles.
func TestSEC02OneProcessNeedsNoMoreThanTheRolesOfAll(t *testing.T) {
	everywhere(t, "one", "one-process", []string{v1alpha1.OperatorAll})
}

// everywhere has the programs of an overlay, which are these, do all their work in all
// namespaces.
func everywhere(t *testing.T, name, overlay string, programs []string) {
	t.Helper()
	refused := len(journal.Refusals())
	var in *installed
	with := options(name)
	with.ClusterWide, with.OneProcess = true, len(programs) == 1
	with.Installed = func(ctx context.Context, name string) (rig.Process, error) { return in.process(ctx, name) }
	r := rig.New(t, plane, with)
	in = install(t, map[string]string{"kustomization.yaml": "resources: [DEPLOY/overlays/" + overlay + "]\n"})
	require.ElementsMatch(t, programs, in.programs())
	in.awaitPolicies(r.Namespace())

	r.Start(rig.Operators()...)
	in.lifecycle(r, func() { in.metricsAreReviewed(r.Namespace()) }, restartOne)
	in.nothingRefused(r, refused)
}

// lifecycle brings a cluster up, and then scales, restarts and deletes it. between is
// called when it has come up and every operator is ready.
func (in *installed) lifecycle(r *rig.Test, between func(), restart func(*testing.T, *rig.Test)) {
	in.t.Helper()
	t := in.t
	r.Apply(parse[v1alpha1.TidbCluster](t, cluster))
	r.AwaitConverged(whole())
	in.awaitReady()
	between()

	more := parse[v1alpha1.TidbCluster](t, cluster)
	more.Spec.TiKV[0].Replicas = ptr.To[int32](4)
	r.Apply(more)
	r.Await(rig.Timeout, "a fourth store", func(o rig.Objects) error {
		if have := o.Names("Pod", "small-tikv-"); !assert.ObjectsAreEqual(stores(), have) {
			return fmt.Errorf("there is %v", have)
		}
		return errors.Join(o.Converged(whole().Kind, whole().Name), o.AllConverged())
	})

	restart(t, r)
	system := in.deployment("pdgroup").Namespace
	assert.ElementsMatch(t, append(in.leaders(system), r.Namespace()+"/small-pd-disruption"), in.leases(), "leaders beside the operators, the right to disrupt beside the cluster")

	r.Delete(parse[v1alpha1.TidbCluster](t, cluster))
	r.Await(rig.Timeout, "nothing is left but claims", func(o rig.Objects) error {
		for _, kind := range append(v1alpha1.Kinds(), "Pod", "Service") {
			if left := o.Names(kind, "small"); len(left) > 0 {
				return fmt.Errorf("there is %s %v", kind, left)
			}
		}
		return nil
	})
}

// stores are those of the cluster that has grown.
func stores() []string {
	return []string{"small-tikv-0", "small-tikv-1", "small-tikv-2", "small-tikv-3"}
}

// roll gives all stores another configuration, and restarts each of them for it.
func roll(t *testing.T, r *rig.Test) {
	t.Helper()
	changed := parse[v1alpha1.TidbCluster](t, cluster)
	changed.Spec.TiKV[0].Replicas, changed.Spec.TiKV[0].Config = ptr.To[int32](4), "[raftstore]\nraft-entry-max-size = \"16MB\"\n"
	r.Apply(changed)
	r.Await(rig.Timeout, "every store with the new configuration", func(o rig.Objects) error {
		for _, name := range stores() {
			if value, err := r.Setting(t.Context(), name, "raftstore.raft-entry-max-size"); err != nil || value != "16MiB" {
				return fmt.Errorf("%s runs with %q: %w", name, value, err)
			}
		}
		return errors.Join(o.Converged(whole().Kind, whole().Name), o.AllConverged())
	})
	for _, name := range stores() {
		assert.Len(t, r.Watcher.UIDs()[rig.Key{Kind: "Pod", Name: name}], 2, "%s was restarted once", name)
	}
}

// restartOne restarts one store, which takes the same rights as a roll and less time.
func restartOne(t *testing.T, r *rig.Test) {
	t.Helper()
	var store v1alpha1.Instance
	require.NoError(t, r.Get(&store, "small-tikv-1"))
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+v1alpha1.AnnotationRestart+`":"1"}}}`))
	require.NoError(t, r.User().Patch(t.Context(), &store, patch))
	pod := rig.Key{Kind: "Pod", Name: store.Name}
	before := r.Watcher.UIDs()[pod]
	r.Await(rig.Timeout, "a store that was restarted", func(o rig.Objects) error {
		if now := o.Get(pod.Kind, pod.Name); now == nil || slices.Contains(before, now.GetUID()) {
			return fmt.Errorf("%s has not been restarted", pod)
		}
		return errors.Join(o.Converged(whole().Kind, whole().Name), o.AllConverged())
	})
}

// leaders are the Leases by which replicas of an operator agree who acts.
func (in *installed) leaders(namespace string) []string {
	var out []string
	for _, name := range in.programs() {
		out = append(out, namespace+"/tidb-groups-"+name)
	}
	return out
}

// awaitMembers waits until the operator of a group may make a member.
func (in *installed) awaitMembers(namespace string) {
	in.t.Helper()
	member := parse[v1alpha1.Instance](in.t, `{metadata: {name: probe, labels: {app.kubernetes.io/managed-by: tidb-groups}}, spec: {group: {kind: PDGroup, name: g}, slot: 0, revision: r, podTemplate: {spec: {containers: []}}}}`)
	member.Namespace = namespace
	operator := in.client("pdgroup")
	require.EventuallyWithT(in.t, func(c *assert.CollectT) {
		assert.NoError(c, operator.Create(in.t.Context(), member.DeepCopy(), client.DryRunAll))
	}, waitFor, tick)
}

// awaitPolicies waits until the policies judge what operators write.
func (in *installed) awaitPolicies(namespace string) {
	in.t.Helper()
	in.awaitMembers(namespace)
	operator := in.client("pdgroup")
	require.EventuallyWithT(in.t, func(c *assert.CollectT) {
		err := operator.Create(in.t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "probe"}}, client.DryRunAll)
		assert.True(c, apierrors.IsForbidden(err) && strings.Contains(err.Error(), "writes only what carries the label"), "%v", err)
	}, waitFor, tick)
}

// client is an operator's ServiceAccount.
func (in *installed) client(name string) client.Client {
	in.t.Helper()
	d := in.deployment(name)
	scheme, err := operator.NewScheme()
	require.NoError(in.t, err)
	c, err := client.New(in.access(in.t.Context(), d.Namespace, d.Spec.Template.Spec.ServiceAccountName), client.Options{Scheme: scheme})
	require.NoError(in.t, err)
	return c
}

// awaitReady waits until every operator's probes answer as its Deployment asks for.
func (in *installed) awaitReady() {
	in.t.Helper()
	for _, name := range in.programs() {
		for _, path := range []string{"/healthz", "/readyz"} {
			require.Eventually(in.t, func() bool { return in.get("http://"+in.hosts[name]+":8081"+path, "") == http.StatusOK }, waitFor, tick, "%s of %s", path, name)
		}
	}
}

// metricsAreReviewed checks that operators may ask the API server who reads their
// metrics: a ServiceAccount of a namespace that is made a reader.
func (in *installed) metricsAreReviewed(namespace string) {
	in.t.Helper()
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "reader-of-" + namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:monitoring"}, // Kubernetes' own
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "default"}},
	}
	require.NoError(in.t, in.admin.Create(in.t.Context(), binding))
	token := in.access(in.t.Context(), namespace, "default").BearerToken
	for _, name := range in.programs() {
		url := "https://" + in.hosts[name] + ":8443/metrics"
		// An alert asks for what controller-runtime says of the leader.
		require.Eventually(in.t, func() bool {
			status, text := in.read(url, token)
			return status == http.StatusOK && strings.Contains(text, `leader_election_master_status{name="tidb-groups-`+name+`"} 1`)
		}, waitFor, tick, name)
		assert.Equal(in.t, http.StatusUnauthorized, in.get(url, ""), name)
	}
}

// get returns the status of an answer; 0 without one.
func (in *installed) get(url, token string) int {
	in.t.Helper()
	status, _ := in.read(url, token)
	return status
}

// read returns the status and the text of an answer; 0 without one.
func (in *installed) read(url, token string) (int, string) {
	in.t.Helper()
	request, err := http.NewRequestWithContext(in.t.Context(), http.MethodGet, url, nil)
	require.NoError(in.t, err)
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // an operator makes its own certificate
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return 0, ""
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, ""
	}
	return response.StatusCode, string(text)
}
