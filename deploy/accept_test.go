package deploy_test

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/testkit/controlplane"
)

// waitFor and tick bound the wait for what the API server learns by watching.
const (
	waitFor = time.Minute
	tick    = 20 * time.Millisecond
)

var plane *controlplane.ControlPlane // what TestMain hands to the tests

func TestMain(m *testing.M) {
	os.Exit(controlplane.Main(m, controlplane.Options{}, func(cp *controlplane.ControlPlane) { plane = cp }))
}

func newClient(t *testing.T) client.Client {
	t.Helper()
	c, err := client.New(plane.Config, client.Options{})
	require.NoError(t, err)
	return client.WithFieldValidation(c, metav1.FieldValidationStrict)
}

// install applies objects for real, in the order that kustomize gives them.
func install(t *testing.T, c client.Client, objects []*unstructured.Unstructured, kinds ...string) {
	t.Helper()
	for _, o := range objects {
		for _, kind := range kinds {
			if o.GetKind() == kind {
				require.NoError(t, c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(o.DeepCopy()), client.FieldOwner("test"), client.ForceOwnership))
			}
		}
	}
}

func TestTheAPIServerAcceptsEverythingThatIsRendered(t *testing.T) {
	c := newClient(t)
	renderings := map[string][]*unstructured.Unstructured{
		"default": render(t, "overlays/default"),
		"minimal": render(t, "overlays/minimal"),
	}
	renderings["namespaces"] = render(t, "overlays/namespaces")
	renderings["one process"] = render(t, "overlays/one-process")
	for _, part := range []string{"shards", "shards/a", "shards/b"} {
		renderings[part] = render(t, "overlays/"+part)
		install(t, c, renderings[part], "Namespace")
	}
	for _, component := range components() {
		if slices.Contains([]string{"policies", "namespaces", "shard", "shards"}, component) {
			continue // one is in the default overlay, the others need a list or a name
		}
		renderings["default with "+component] = renderKustomization(t, "namespace: "+installed+"\nresources: [../default]\ncomponents: [../../components/"+component+"]\n")
	}
	install(t, c, renderings["default"], "Namespace")
	for _, name := range []string{"shop", "blog"} { // they exist, says overlays/namespaces
		require.NoError(t, client.IgnoreAlreadyExists(c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})))
	}
	var judged []*unstructured.Unstructured
	for name, objects := range renderings {
		t.Run(name, func(t *testing.T) {
			for _, o := range objects {
				if slices.Contains(prometheusKinds(), o.GetKind()) {
					continue // its kind is the Prometheus Operator's
				}
				if slices.ContainsFunc(judged, func(other *unstructured.Unstructured) bool { return reflect.DeepEqual(o, other) }) {
					continue // most objects are the same in all renderings
				}
				judged = append(judged, o)
				err := c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(o.DeepCopy()), client.FieldOwner("test"), client.ForceOwnership, client.DryRunAll)
				assert.NoError(t, err, "%s %s", o.GetKind(), o.GetName())
			}
		})
	}
}

func TestKubectlAppliesTheOverlayAndThenTheSamples(t *testing.T) {
	_, err := plane.Kubectl(t.Context(), "apply", "--kustomize", "overlays/default")
	require.NoError(t, err)
	_, err = plane.Kubectl(t.Context(), "wait", "--for=condition=Established", "--timeout=2m", "crd", "--selector=app.kubernetes.io/part-of=tidb-groups")
	require.NoError(t, err)
	out, err := plane.Kubectl(t.Context(), "apply", "--kustomize", "overlays/default")
	require.NoError(t, err)
	assert.NotContains(t, out, "configured", "applying again changes nothing")
	samples, err := filepath.Glob("samples/*.yaml")
	require.NoError(t, err)
	require.Len(t, samples, 10)
	for _, sample := range samples {
		_, err := plane.Kubectl(t.Context(), "apply", "--dry-run=server", "--namespace=default", "--filename", sample)
		assert.NoError(t, err)
	}
}

func TestOperatorPodsPassTheRestrictedPodSecurityStandard(t *testing.T) {
	c := newClient(t)
	objects := renderKustomization(t, "namespace: "+installed+"\nresources: [../default]\ncomponents: [../../components/namespaced, ../../components/high-availability]\n")
	install(t, c, objects, "Namespace", "ServiceAccount")
	namespace := &corev1.Namespace{}
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Name: installed}, namespace))
	require.Equal(t, "restricted", namespace.Labels["pod-security.kubernetes.io/enforce"])
	for name, d := range every[appsv1.Deployment](t, objects, "Deployment") {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: installed, Name: name, Labels: d.Spec.Template.Labels}, Spec: d.Spec.Template.Spec}
		assert.NoError(t, c.Create(t.Context(), pod, client.DryRunAll), name)
	}
}

// What the roles mean is the API server's to say.
func TestTheAuthorizerAgrees(t *testing.T) {
	c := newClient(t)
	may := func(t *testing.T, system, operator, namespace, verb, resource string) bool {
		group, resource, cut := strings.Cut(resource, "/")
		if !cut {
			group, resource = "", group
		}
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User:               "system:serviceaccount:" + system + ":" + operator + "-operator",
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: verb, Group: group, Resource: resource},
		}}
		require.NoError(t, c.Create(t.Context(), review))
		return review.Status.Allowed
	}
	rbac := []string{"Namespace", "ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"}

	t.Run("installed for all namespaces", func(t *testing.T) {
		install(t, c, render(t, "overlays/default"), rbac...)
		allowed := func(operator, namespace, verb, resource string) bool {
			return may(t, installed, operator, namespace, verb, resource)
		}
		assert.Eventually(t, func() bool { return allowed("instance", "default", "create", "pods") }, waitFor, tick, "the authorizer learns of roles by watching")
		assert.Eventually(t, func() bool { return allowed("tidbcluster", "default", "create", "groups.tidb.dev/pdgroups") }, waitFor, tick)
		assert.Eventually(t, func() bool { return allowed("pdgroup", "default", "create", "groups.tidb.dev/instances") }, waitFor, tick)
		assert.Eventually(t, func() bool { return allowed("tikvgroup", "", "list", "nodes") }, waitFor, tick)
		assert.Eventually(t, func() bool { return allowed("pdgroup", installed, "create", "coordination.k8s.io/leases") }, waitFor, tick)
		assert.Eventually(t, func() bool { return allowed("tikvgroup", "default", "create", "coordination.k8s.io/leases") }, waitFor, tick, "the lease of a cluster's disruptions")
		for _, operator := range []string{"instance", "tidbcluster"} {
			assert.False(t, allowed(operator, "default", "create", "coordination.k8s.io/leases"), "%s disrupts nothing: its leader lease is in its own namespace", operator)
		}
		for _, operator := range operators() {
			for _, verb := range []string{"get", "list", "watch", "create", "update", "patch", "delete"} {
				makes := operator == "tidbgroup" && verb == "create" // root's password, which it cannot read again
				assert.Equal(t, makes, allowed(operator, "default", verb, "secrets"), "%s %s", operator, verb)
				if operator != "instance" {
					asks := operator == "tidbgroup" && verb == "list" || // how those of its Jobs ended
						operator == "backup" && (verb == "get" || verb == "list" || verb == "watch") // and what keeps them from running
					assert.Equal(t, asks, allowed(operator, "default", verb, "pods"), "%s %s", operator, verb)
				}
				runs := (operator == "tidbgroup" || operator == "backup") && verb != "update" && verb != "patch"
				assert.Equal(t, runs, allowed(operator, "default", verb, "batch/jobs"), "%s %s", operator, verb)
			}
			if operator != "tidbcluster" {
				assert.False(t, allowed(operator, "default", "create", "groups.tidb.dev/pdgroups"), operator)
			}
		}
	})
	t.Run("installed for one namespace", func(t *testing.T) {
		install(t, c, renderKustomization(t, "namespace: only-here\nresources: [../default]\ncomponents: [../../components/namespaced]\n"), rbac...)
		assert.Eventually(t, func() bool { return may(t, "only-here", "instance", "only-here", "create", "pods") }, waitFor, tick)
		assert.False(t, may(t, "only-here", "instance", "default", "create", "pods"))
		assert.False(t, may(t, "only-here", "instance", "default", "get", "pods"))
		assert.False(t, may(t, "only-here", "tikvgroup", "", "list", "nodes"))
	})
}

func TestSamplesAreForTheDefaultVersion(t *testing.T) {
	samples, err := filepath.Glob("samples/*.yaml")
	require.NoError(t, err)
	for _, sample := range samples {
		text, err := os.ReadFile(sample)
		require.NoError(t, err)
		for document := range strings.SplitSeq(string(text), "\n---\n") {
			o := &unstructured.Unstructured{}
			require.NoError(t, yaml.Unmarshal([]byte(document), &o.Object))
			version, _, err := unstructured.NestedString(o.Object, "spec", "version")
			require.NoError(t, err)
			if o.GroupVersionKind().Group == v1alpha1.GroupName && o.GetKind() != v1alpha1.KindBackup {
				assert.Equal(t, "v8.5.7", version, "%s %s", sample, o.GetName())
			}
			assert.Empty(t, o.GetNamespace(), "a sample goes where kubectl is told to")
		}
	}
}
