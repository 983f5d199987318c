package installation_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/e2e/rig"
	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/testkit/binaries"
	"github.com/tidb-groups/tidb-groups/shared/testkit/loopback"
)

const (
	// waitFor and tick bound the wait for what the API server learns by watching.
	waitFor = time.Minute
	tick    = 50 * time.Millisecond
	// partOf selects what an overlay has installed.
	partOf = "app.kubernetes.io/part-of=tidb-groups"
)

// installed is what an overlay has made of the API server.
type installed struct {
	t     *testing.T
	admin client.Client
	// objects are those that kubectl has applied, as the API server keeps them.
	objects []unstructured.Unstructured
	// hosts are the addresses of the operators' pods.
	hosts map[string]string
}

// install applies kustomizations as a user does, one after the other: files, by their names
// below the directory that kubectl is given. DEPLOY in them is the directory deploy. What
// another test has installed loses its rights before, as docs/tasks/install.md says.
func install(t *testing.T, kustomizations ...map[string]string) *installed {
	t.Helper()
	c, err := client.New(plane.Config, client.Options{})
	require.NoError(t, err)
	_, err = plane.Kubectl(t.Context(), "delete", "clusterrolebindings,rolebindings,validatingadmissionpolicybindings", "--all-namespaces", "--selector", partOf)
	require.NoError(t, err)
	_, err = plane.Kubectl(t.Context(), "delete", "leases", "--all", "--namespace", system)
	require.NoError(t, err)
	in := &installed{t: t, admin: c, hosts: map[string]string{}}
	for _, files := range kustomizations {
		in.apply(files)
	}
	in.awaitRights()
	return in
}

// apply applies one kustomization.
func (in *installed) apply(files map[string]string) {
	in.t.Helper()
	root, err := binaries.Root()
	require.NoError(in.t, err)
	top, err := filepath.EvalSymlinks(in.t.TempDir()) // kustomize follows relative paths only
	require.NoError(in.t, err)
	for name, text := range files {
		path := filepath.Join(top, name)
		require.NoError(in.t, os.MkdirAll(filepath.Dir(path), 0o755))
		deploy, err := filepath.Rel(filepath.Dir(path), filepath.Join(root, "deploy"))
		require.NoError(in.t, err)
		require.NoError(in.t, os.WriteFile(path, []byte(strings.ReplaceAll(text, "DEPLOY", deploy)), 0o600))
	}
	out, err := plane.Kubectl(in.t.Context(), "apply", "--kustomize", top, "--output=json")
	require.NoError(in.t, err)
	var list unstructured.UnstructuredList
	require.NoError(in.t, list.UnmarshalJSON([]byte(out)))
	in.objects = append(in.objects, list.Items...)
}

// find returns an applied object, typed.
func find[T any](t *testing.T, objects []unstructured.Unstructured, kind, namespace, name string) T {
	t.Helper()
	var typed T
	for _, o := range objects {
		if o.GetKind() == kind && o.GetNamespace() == namespace && o.GetName() == name {
			require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &typed))
			return typed
		}
	}
	require.Fail(t, "nothing of that name was applied", "%s %s/%s", kind, namespace, name)
	return typed
}

// awaitRights waits until the API server's authorizer and its policies have heard of all that was applied.
func (in *installed) awaitRights() {
	in.t.Helper()
	bindings := 0
	for _, o := range in.objects {
		if o.GetKind() != "RoleBinding" && o.GetKind() != "ClusterRoleBinding" {
			continue
		}
		bindings++
		b := find[rbacv1.RoleBinding](in.t, in.objects, o.GetKind(), o.GetNamespace(), o.GetName())
		within := ""
		if b.RoleRef.Kind == "Role" {
			within = b.Namespace
		}
		require.NotEmpty(in.t, b.Subjects)
		for _, subject := range b.Subjects {
			for _, rule := range find[rbacv1.Role](in.t, in.objects, b.RoleRef.Kind, within, b.RoleRef.Name).Rules {
				in.awaitRight(subject, b.Namespace, rule)
			}
		}
	}
	require.GreaterOrEqual(in.t, bindings, 2*len(rig.Operators()))
}

// awaitRight waits until the authorizer knows a right.
func (in *installed) awaitRight(subject rbacv1.Subject, namespace string, rule rbacv1.PolicyRule) {
	in.t.Helper()
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:               "system:serviceaccount:" + subject.Namespace + ":" + subject.Name,
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: rule.Verbs[0], Group: rule.APIGroups[0], Resource: rule.Resources[0]},
	}}
	if subject.Kind == rbacv1.GroupKind {
		review.Spec.User, review.Spec.Groups = "", []string{subject.Name}
	}
	if len(rule.ResourceNames) > 0 {
		review.Spec.ResourceAttributes.Name = rule.ResourceNames[0]
	}
	review.Spec.ResourceAttributes.Resource, review.Spec.ResourceAttributes.Subresource, _ = strings.Cut(rule.Resources[0], "/")
	require.Eventually(in.t, func() bool {
		asked := review.DeepCopy()
		return in.admin.Create(in.t.Context(), asked) == nil && asked.Status.Allowed
	}, waitFor, tick, "%s", review.Spec)
}

// process is how an operator's container would run: see rig.Options.
func (in *installed) process(ctx context.Context, name string) (rig.Process, error) {
	in.t.Helper()
	d := in.deployment(name)
	pod := in.pod(ctx, d)
	c := pod.Spec.Containers[0]
	var known []string
	for _, e := range c.Env {
		known = append(known, "$("+e.Name+")", in.variable(ctx, pod, e))
	}
	var args []string
	for _, arg := range c.Args {
		args = append(args, strings.NewReplacer(known...).Replace(arg))
	}
	flags, err := operator.Parse(name, args)
	if err != nil {
		return rig.Process{}, err
	}
	// Each pod has an address of its own, and a file that tells it its namespace.
	in.hosts[name] = loopback.Host(in.t)
	flags.MetricsAddress, flags.ProbeAddress = in.hosts[name]+flags.MetricsAddress, in.hosts[name]+flags.ProbeAddress
	flags.LeaderElectionNamespace = pod.Namespace
	config := in.access(ctx, pod.Namespace, pod.Spec.ServiceAccountName)
	for _, definition := range rig.Definitions() {
		if name != v1alpha1.OperatorAll && definition.Name != name || !definition.Tools {
			continue
		}
		itself, err := client.New(config, client.Options{})
		require.NoError(in.t, err)
		flags.Image, err = operator.ImageOf(ctx, itself, client.ObjectKeyFromObject(pod))
		require.NoError(in.t, err, "its own pod")
		require.Equal(in.t, c.Image, flags.Image)
	}
	return rig.Process{Config: config, Flags: flags}, nil
}

// programs are the names of the Deployments.
func (in *installed) programs() []string {
	var out []string
	for _, o := range in.objects {
		if name, found := strings.CutSuffix(o.GetName(), "-operator"); found && o.GetKind() == "Deployment" {
			out = append(out, name)
		}
	}
	return out
}

// deployment returns the Deployment that an operator runs in.
func (in *installed) deployment(name string) appsv1.Deployment {
	in.t.Helper()
	if !slices.Contains(in.programs(), name) {
		name = v1alpha1.OperatorAll
	}
	at := slices.IndexFunc(in.objects, func(o unstructured.Unstructured) bool {
		return o.GetKind() == "Deployment" && o.GetName() == name+"-operator"
	})
	require.GreaterOrEqual(in.t, at, 0, name)
	return find[appsv1.Deployment](in.t, in.objects, "Deployment", in.objects[at].GetNamespace(), in.objects[at].GetName())
}

// pod makes a Deployment's pod, which is the process of this test: nothing else runs it.
func (in *installed) pod(ctx context.Context, d appsv1.Deployment) *corev1.Pod {
	in.t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, GenerateName: d.Name + "-", Labels: d.Spec.Template.Labels}, Spec: *d.Spec.Template.Spec.DeepCopy()}
	pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "rig.tidb-groups.dev/in-the-test"}}
	require.NoError(in.t, in.admin.Create(ctx, pod))
	return pod
}

// variable returns the value of a container's environment variable.
func (in *installed) variable(ctx context.Context, pod *corev1.Pod, e corev1.EnvVar) string {
	in.t.Helper()
	switch from := e.ValueFrom; {
	case from == nil:
		return e.Value
	case from.FieldRef != nil:
		fields := map[string]string{"metadata.name": pod.Name, "metadata.namespace": pod.Namespace}
		require.Contains(in.t, fields, from.FieldRef.FieldPath)
		return fields[from.FieldRef.FieldPath]
	default:
		require.NotNil(in.t, from.ConfigMapKeyRef, e.Name)
		var values corev1.ConfigMap
		require.NoError(in.t, in.admin.Get(ctx, client.ObjectKey{Namespace: pod.Namespace, Name: from.ConfigMapKeyRef.Name}, &values))
		require.Contains(in.t, values.Data, from.ConfigMapKeyRef.Key)
		return values.Data[from.ConfigMapKeyRef.Key]
	}
}

// access is the API server with a token of a ServiceAccount, which exists.
func (in *installed) access(ctx context.Context, namespace, account string) *rest.Config {
	in.t.Helper()
	request := &authenticationv1.TokenRequest{}
	who := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}}
	require.NoError(in.t, in.admin.SubResource("token").Create(ctx, who, request))
	config := rest.AnonymousClientConfig(plane.Config)
	config.BearerToken, config.QPS = request.Status.Token, -1
	return config
}

// leases returns the Leases of tidb-groups, of whatever namespace, as namespace/name.
func (in *installed) leases() []string {
	in.t.Helper()
	out, err := plane.Kubectl(in.t.Context(), "get", "leases", "--all-namespaces", `--output=jsonpath={range .items[*]}{.metadata.namespace}/{.metadata.name} {end}`)
	require.NoError(in.t, err)
	return slices.DeleteFunc(strings.Fields(out), func(name string) bool { return strings.HasPrefix(name, "kube-") }) // Kubernetes' own
}

// nothingRefused fails the test for whatever an operator was not allowed.
func (in *installed) nothingRefused(r *rig.Test, before int) {
	in.t.Helper()
	t := in.t
	assert.Empty(t, r.Requests.Refused())
	assert.Empty(t, journal.Refusals()[before:])
	asked := map[string]bool{}
	for request := range r.Requests.Counts() {
		asked[request.Operator] = true
	}
	assert.ElementsMatch(t, in.programs(), slices.Collect(maps.Keys(asked)), "their requests were counted")
}

// untouched is content when no operator has done anything about the objects of a namespace.
func untouched(o rig.Objects, made ...rig.Key) error {
	if !assert.ObjectsAreEqual(keys(made), keys(o.Keys())) {
		return fmt.Errorf("there is %v", o.Keys())
	}
	for _, key := range made {
		object := o.Get(key.Kind, key.Name)
		if status, has := object.Object["status"]; has || len(object.GetFinalizers()) > 0 {
			return fmt.Errorf("%s has status %v and finalizers %v", key, status, object.GetFinalizers())
		}
	}
	return nil
}

func keys(all []rig.Key) map[rig.Key]bool {
	out := map[rig.Key]bool{}
	for _, key := range all {
		out[key] = true
	}
	return out
}

// whole is the cluster of every test.
func whole() rig.Key { return rig.Key{Kind: v1alpha1.KindTidbCluster, Name: "small"} }
