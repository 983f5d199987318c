package commands_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/deploy/docs"
)

const (
	system = "tidb-groups-system"
	// later is a generation that no object reaches: what is said of it is always current.
	later = 1000
)

// newClient returns a client that refuses unknown fields, as kubectl does.
func newClient(t *testing.T) client.Client {
	t.Helper()
	c, err := client.New(plane.Config, client.Options{})
	require.NoError(t, err)
	return client.WithFieldValidation(c, metav1.FieldValidationStrict)
}

// copied returns a folder with this module's manifests and the overlay that the page of
// installation has a reader write.
func copied(t *testing.T, pages map[string]string) string {
	t.Helper()
	top := t.TempDir()
	for _, name := range []string{"bases", "components", "crds", "overlays", "samples"} {
		require.NoError(t, os.CopyFS(filepath.Join(top, "deploy", name), os.DirFS(filepath.Join("..", name))))
	}
	const file = "# deploy/overlays/own/kustomization.yaml\n"
	for _, block := range docs.Blocks(pages["docs/tasks/install.md"], "yaml") {
		if text, found := strings.CutPrefix(block.Text, file); found {
			own := filepath.Join(top, "deploy", "overlays", "own")
			require.NoError(t, os.Mkdir(own, 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(own, "kustomization.yaml"), []byte(text), 0o600))
			return top
		}
	}
	require.Fail(t, "docs/tasks/install.md has no overlay")
	return ""
}

// install makes what the whole Kubernetes has when the commands of pages are typed.
func install(t *testing.T, c client.Client, top string, pages map[string]string) {
	t.Helper()
	create := func(o client.Object) {
		if err := c.Create(t.Context(), o); !apierrors.IsAlreadyExists(err) {
			require.NoError(t, err, o.GetName())
		}
	}
	// svc is older than the policy that forbids it.
	for _, name := range []string{"svc", "shop", "blog", "tidb-groups-a", "tidb-groups-b", system} {
		create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
		create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "default"}})
	}
	// Made before its namespace asks pods to pass a standard.
	operator := map[string]string{"app.kubernetes.io/name": "pdgroup-operator", "groups.tidb.dev/run": "x"}
	create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "pdgroup-operator-0", Labels: operator}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "operator", Image: "x"}}}})
	_, err := plane.Kubectl(t.Context(), "apply", "-k", filepath.Join(top, "deploy", "overlays", "own"))
	require.NoError(t, err)
	_, err = plane.Kubectl(t.Context(), "wait", "--for=condition=Established", "crd", "--all", "--timeout=2m")
	require.NoError(t, err)
	deployments := &appsv1.DeploymentList{}
	require.NoError(t, c.List(t.Context(), deployments, client.InNamespace(system)))
	require.NotEmpty(t, deployments.Items)
	for _, d := range deployments.Items {
		n := *d.Spec.Replicas
		d.Status = appsv1.DeploymentStatus{ObservedGeneration: later, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n,
			Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue}}}
		require.NoError(t, c.Status().Update(t.Context(), &d), d.Name)
	}
	create(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "pdgroup-operator"}})
	create(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}, Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "node.kubernetes.io/disk-pressure", Effect: corev1.TaintEffectNoSchedule}}}})
	create(&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "standard"}, Provisioner: "example.com/none"})
	presume(t, c, "shop", pages["docs/reference/tikvgroup.md"])
}

// presume makes the objects that a page presumes, in its namespace: those of the samples, and
// of testdata, with statuses. What a page does not name is left out.
func presume(t *testing.T, c client.Client, in, page string) {
	t.Helper()
	file := func(path string) string {
		text, err := os.ReadFile(path) //nolint:gosec // a file of the repository
		require.NoError(t, err)
		return string(text)
	}
	sample := func(name, from, to string) string {
		return strings.ReplaceAll(file("../samples/"+name+".yaml"), from, to)
	}
	texts := []string{sample("basic", "", ""), sample("groups-only", "shop-", "basic-"), file("testdata/objects.yaml"),
		instances("basic-pd", v1alpha1.KindPDGroup), instances("basic-tikv", v1alpha1.KindTiKVGroup), instances("basic-tidb", v1alpha1.KindTiDBGroup)}
	for named, further := range map[string][]string{
		"hot-tikv": {sample("groups-only", "shop-", "hot-")},
		"shop-":    {sample("groups-only", "", "")},
		"zones":    {sample("three-zones", "", ""), instances("zones-tikv", v1alpha1.KindTiKVGroup)},
		"backup":   {sample("backup-local-s3", "", ""), sample("basic", "name: basic", "name: again"), file("testdata/backups.yaml")},
	} {
		if strings.Contains(page, named) {
			texts = append(texts, further...)
		}
	}
	statuses := map[string]map[string]any{}
	require.NoError(t, yaml.UnmarshalStrict([]byte(file("testdata/statuses.yaml")), &statuses))
	for _, document := range strings.Split("\n"+strings.Join(texts, "\n---\n"), "\n---\n") {
		o := &unstructured.Unstructured{}
		require.NoError(t, yaml.Unmarshal([]byte(document), &o.Object), document)
		o.SetNamespace(in)
		require.NoError(t, c.Create(t.Context(), o), document)
		if o.GroupVersionKind().Group == v1alpha1.GroupName {
			status, known := statuses[o.GetKind()]
			require.True(t, known, "testdata/statuses.yaml has no %s", o.GetKind())
			o.Object["status"] = withConditions(o.GetKind(), status)
			require.NoError(t, c.Status().Update(t.Context(), o), o.GetName())
		}
	}
	// What the pages have a reader add before, and take away.
	_, err := plane.Kubectl(t.Context(), "-n", in, "patch", "tidbcluster", "basic", "--type=json", "-p", `[
		{"op": "add", "path": "/spec/disruption", "value": {"paused": false}},
		{"op": "add", "path": "/spec/tikv/0/disruption", "value": {"updateAtMost": 1}},
		{"op": "add", "path": "/spec/tikv/-", "value": {"name": "hot", "volumes": [{"name": "tikv", "storage": "1Gi"}]}}]`)
	require.NoError(t, err)
	event(t, c, in)
}

// event makes the Event that pages ask for: of a reason, and of a pod.
func event(t *testing.T, c client.Client, in string) {
	t.Helper()
	e := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: in, Name: "released"}, Reason: "ReleasedByShard", Type: corev1.EventTypeNormal,
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: in, Name: "basic-tikv-1"}}
	require.NoError(t, c.Create(t.Context(), e))
}

// instances are the manifests of two Instances of a group.
func instances(group, kind string) string {
	var out []string
	cluster, _, _ := strings.Cut(group, "-")
	for slot := range 2 {
		out = append(out, fmt.Sprintf(`apiVersion: groups.tidb.dev/v1alpha1
kind: Instance
metadata:
  name: %[1]s-%[4]d
  labels: {groups.tidb.dev/group: %[1]s, app.kubernetes.io/instance: %[3]s-pd}
  annotations: {groups.tidb.dev/failed-over: "2026-01-02T03:04:05Z"}
  finalizers: [groups.tidb.dev/member]
spec: {group: {kind: %[2]s, name: %[1]s}, slot: %[4]d, revision: r1, podTemplate: {spec: {containers: []}}}
`, group, kind, cluster, slot))
	}
	return strings.Join(out, "\n---\n")
}

// withConditions is a status with every condition that a kind may have.
func withConditions(kind string, status map[string]any) map[string]any {
	out := map[string]any{"observedGeneration": int64(later)}
	for name, value := range status {
		out[name] = value
	}
	var conditions []any
	for _, c := range v1alpha1.ConditionTable() {
		if c.AppliesTo(kind) {
			conditions = append(conditions, map[string]any{"type": c.Type, "status": "True", "reason": "Ready", "message": "m", "observedGeneration": int64(later), "lastTransitionTime": "2026-01-02T03:04:05Z"})
		}
	}
	out["conditions"] = conditions
	return out
}
