package validation_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/testkit/controlplane"
)

var plane *controlplane.ControlPlane // what TestMain hands to the tests

func TestMain(m *testing.M) {
	options := controlplane.Options{CRDPaths: crdFiles()}
	os.Exit(controlplane.Main(m, options, func(cp *controlplane.ControlPlane) { plane = cp }))
}

// crdFiles lists the CRDs; their directory also holds a kustomization.
func crdFiles() []string {
	var files []string
	for _, kind := range v1alpha1.Kinds() {
		files = append(files, "../crds/groups.tidb.dev_"+strings.ToLower(kind)+"s.yaml")
	}
	return files
}

// newClient returns a client that refuses unknown fields, as kubectl does.
func newClient(t *testing.T) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	metav1.AddToGroupVersion(scheme, metav1.SchemeGroupVersion)
	c, err := client.New(plane.Config, client.Options{Scheme: scheme})
	require.NoError(t, err)
	return client.WithFieldValidation(c, metav1.FieldValidationStrict)
}

// newNamespace makes a namespace for the test.
func newNamespace(t *testing.T) string {
	t.Helper()
	c, err := client.New(plane.Config, client.Options{})
	require.NoError(t, err)
	return controlplane.CreateNamespace(t, c)
}

// valid returns the smallest valid object of a kind.
func valid(t *testing.T, kind, namespace string) *unstructured.Unstructured {
	t.Helper()
	specs := map[string]string{
		v1alpha1.KindPDGroup:        `{version: v8.5.7, volumes: [{name: pd, storage: 1Gi}]}`,
		v1alpha1.KindTiKVGroup:      `{version: v8.5.7, pdGroup: {name: basic-pd}, volumes: [{name: tikv, storage: 1Gi}]}`,
		v1alpha1.KindTiDBGroup:      `{version: v8.5.7, pdGroup: {name: basic-pd}}`,
		v1alpha1.KindTiFlashGroup:   `{version: v8.5.7, pdGroup: {name: basic-pd}, volumes: [{name: data0, storage: 1Gi}]}`,
		v1alpha1.KindTiProxyGroup:   `{version: v1.3.0, pdGroup: {name: basic-pd}}`,
		v1alpha1.KindTiCDCGroup:     `{version: v8.5.7, pdGroup: {name: basic-pd}}`,
		v1alpha1.KindBackup:         `{tidbGroup: {name: basic-tidb}, storage: {pvc: {claimName: backups}}}`,
		v1alpha1.KindBackupSchedule: `{schedule: "0 2 * * *", template: {tidbGroup: {name: basic-tidb}, storage: {pvc: {claimName: backups}}}}`,
		v1alpha1.KindLogBackup:      `{tidbGroup: {name: basic-tidb}, storage: {s3: {bucket: backups, secret: {name: keys}}}}`,
		v1alpha1.KindRestore:        `{tidbGroup: {name: basic-tidb}, from: {backup: {name: basic}}}`,
		v1alpha1.KindInstance:       `{group: {kind: PDGroup, name: basic-pd}, slot: 0, revision: r1, podTemplate: {spec: {containers: []}}}`,
		v1alpha1.KindTidbCluster: `{version: v8.5.7, pd: {volumes: [{name: pd, storage: 1Gi}]}, tikv: [{volumes: [{name: tikv, storage: 1Gi}]}],
			tidb: [{replicas: 2}], tiflash: [{volumes: [{name: data0, storage: 1Gi}]}], tiproxy: [{version: v1.3.0}], ticdc: [{}]}`,
	}
	var spec map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(strings.ReplaceAll(specs[kind], "\t", " ")), &spec))
	o := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	o.SetGroupVersionKind(v1alpha1.GroupVersion().WithKind(kind))
	o.SetNamespace(namespace)
	o.SetName("basic")
	return o
}

// change is one edit of an object: the value, in YAML, that a field gets. "" takes
// the field away.
type change struct{ path, value string }

// apply makes the edits. Paths are written as in the API server's messages, such
// as spec.volumes[0].storage; an index one past the end appends.
func apply(t *testing.T, o *unstructured.Unstructured, changes ...change) *unstructured.Unstructured {
	t.Helper()
	for _, c := range changes {
		var value any
		require.NoError(t, yaml.Unmarshal([]byte(c.value), &value), c.value)
		keys := strings.Split(strings.ReplaceAll(strings.ReplaceAll(c.path, "[", "."), "]", ""), ".")
		_, err := set(o.Object, keys, value, c.value == "")
		require.NoError(t, err, c.path)
	}
	return o
}

// set returns a container with the value below keys replaced or removed.
func set(in any, keys []string, value any, remove bool) (any, error) {
	if len(keys) == 0 {
		return value, nil
	}
	index, err := strconv.Atoi(keys[0])
	if err != nil {
		object, ok := in.(map[string]any)
		if !ok && in != nil {
			return nil, fmt.Errorf("%s: not an object", keys[0])
		}
		if object == nil {
			object = map[string]any{}
		}
		if remove && len(keys) == 1 {
			delete(object, keys[0])
			return object, nil
		}
		object[keys[0]], err = set(object[keys[0]], keys[1:], value, remove)
		return object, err
	}
	list, ok := in.([]any)
	if !ok && in != nil {
		return nil, fmt.Errorf("%d: not a list", index)
	}
	if index == len(list) {
		list = append(list, nil)
	}
	list[index], err = set(list[index], keys[1:], value, remove)
	return list, err
}
