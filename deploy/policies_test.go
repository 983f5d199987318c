package deploy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/testkit/controlplane"
)

// tenants is the API server with the default overlay's kinds, roles and policies, and a
// namespace of a user.
type tenants struct {
	*testing.T
	admin     client.Client
	namespace string
}

func withPolicies(t *testing.T) tenants {
	t.Helper()
	c := newClient(t)
	install(t, c, render(t, "overlays/default"), "Namespace", "CustomResourceDefinition", "ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding",
		"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
	_, err := plane.Kubectl(t.Context(), "wait", "--for=condition=Established", "--timeout=2m", "crd", "--selector=app.kubernetes.io/part-of=tidb-groups")
	require.NoError(t, err)
	w := tenants{t, c, controlplane.CreateNamespace(t, c)}
	// Policies and what they read come to the API server by watching.
	mallory := w.user("mallory", "groups.tidb.dev/*: *")
	require.Eventually(t, func() bool {
		return isForbidden(mallory.Create(t.Context(), w.object("Instance", "probe", nil), client.DryRunAll), "may not create pods")
	}, waitFor, tick)
	operator := w.operator("tikvgroup", installed)
	require.Eventually(t, func() bool {
		return isForbidden(operator.Create(t.Context(), w.object("ConfigMap", "probe", nil), client.DryRunAll), "writes only what carries the label")
	}, waitFor, tick)
	require.Eventually(t, func() bool {
		return operator.Create(t.Context(), w.object("ConfigMap", "probe", ours()), client.DryRunAll) == nil
	}, waitFor, tick)
	return w
}

func isForbidden(err error, sentence string) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), sentence)
}

func ours() map[string]string {
	return map[string]string{"app.kubernetes.io/managed-by": "tidb-groups"}
}

func (w tenants) as(config *rest.Config) client.Client {
	w.Helper()
	c, err := client.New(config, client.Options{})
	require.NoError(w, err)
	return c
}

// user returns the client of a user who may do this in the namespace, each as
// "group/resource: verb verb".
func (w tenants) user(name string, rights ...string) client.Client {
	w.Helper()
	name += "-of-" + w.namespace
	role := &rbacv1.Role{}
	role.Namespace, role.Name = w.namespace, name
	for _, right := range rights {
		resource, verbs, _ := strings.Cut(right, ": ")
		group, resource, cut := strings.Cut(resource, "/")
		if !cut {
			group, resource = "", group
		}
		role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: strings.Fields(verbs)})
	}
	require.NoError(w, w.admin.Create(w.Context(), role))
	return w.bound(name, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name})
}

// bound returns the client of a user who has a role in the namespace.
func (w tenants) bound(name string, role rbacv1.RoleRef) client.Client {
	w.Helper()
	binding := &rbacv1.RoleBinding{RoleRef: role, Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name}}}
	binding.Namespace, binding.Name = w.namespace, name
	require.NoError(w, w.admin.Create(w.Context(), binding))
	config, err := plane.User(name)
	require.NoError(w, err)
	return w.as(config)
}

// operator returns the client of an operator's ServiceAccount in a namespace.
func (w tenants) operator(name, namespace string) client.Client {
	w.Helper()
	return w.as(plane.ServiceAccount(namespace, name+"-operator"))
}

// object returns a small valid object of a kind.
func (w tenants) object(kind, name string, labels map[string]string) *unstructured.Unstructured {
	w.Helper()
	text := map[string]string{
		"ConfigMap":             `{apiVersion: v1, data: {a: b}}`,
		"Lease":                 `{apiVersion: coordination.k8s.io/v1, spec: {holderIdentity: me}}`,
		"Job":                   `{apiVersion: batch/v1, spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: b}]}}}}`,
		"Instance":              `{apiVersion: groups.tidb.dev/v1alpha1, spec: {group: {kind: TiKVGroup, name: basic-tikv-hot}, slot: 0, revision: r1, podTemplate: {spec: {containers: []}}}}`,
		"PDGroup":               `{apiVersion: groups.tidb.dev/v1alpha1, spec: {version: v8.5.7, volumes: [{name: pd, storage: 1Gi}]}}`,
		"TiKVGroup":             `{apiVersion: groups.tidb.dev/v1alpha1, spec: {version: v8.5.7, pdGroup: {name: basic-pd}, volumes: [{name: tikv, storage: 1Gi}]}}`,
		"TiDBGroup":             `{apiVersion: groups.tidb.dev/v1alpha1, spec: {version: v8.5.7, pdGroup: {name: basic-pd}}}`,
		"TiFlashGroup":          `{apiVersion: groups.tidb.dev/v1alpha1, spec: {version: v8.5.7, pdGroup: {name: basic-pd}, volumes: [{name: data0, storage: 1Gi}]}}`,
		"TiProxyGroup":          `{apiVersion: groups.tidb.dev/v1alpha1, spec: {version: v1.3.0, pdGroup: {name: basic-pd}}}`,
		"TiCDCGroup":            `{apiVersion: groups.tidb.dev/v1alpha1, spec: {version: v8.5.7, pdGroup: {name: basic-pd}}}`,
		"TidbCluster":           `{apiVersion: groups.tidb.dev/v1alpha1, spec: {version: v8.5.7, pd: {volumes: [{name: pd, storage: 1Gi}]}, tikv: [{volumes: [{name: tikv, storage: 1Gi}]}]}}`,
		"Backup":                `{apiVersion: groups.tidb.dev/v1alpha1, spec: {tidbGroup: {name: basic-tidb}, storage: {pvc: {claimName: a}}}}`,
		"BackupSchedule":        `{apiVersion: groups.tidb.dev/v1alpha1, spec: {schedule: "0 2 * * *", template: {tidbGroup: {name: basic-tidb}, storage: {pvc: {claimName: a}}}}}`,
		"LogBackup":             `{apiVersion: groups.tidb.dev/v1alpha1, spec: {tidbGroup: {name: basic-tidb}, storage: {s3: {bucket: abc, secret: {name: a}}}}}`,
		"Restore":               `{apiVersion: groups.tidb.dev/v1alpha1, spec: {tidbGroup: {name: basic-tidb}, from: {backup: {name: a}}}}`,
		"PersistentVolumeClaim": `{apiVersion: v1, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}`,
	}[kind]
	o := &unstructured.Unstructured{}
	require.NoError(w, yaml.Unmarshal([]byte(text), &o.Object))
	o.SetKind(kind)
	o.SetNamespace(w.namespace)
	o.SetName(name)
	o.SetLabels(labels)
	return o
}

// stored creates an object as a user who may do everything.
func (w tenants) stored(o *unstructured.Unstructured) *unstructured.Unstructured {
	w.Helper()
	require.NoError(w, w.admin.Create(w.Context(), o))
	return o
}

// patch patches an object by merging.
func (w tenants) patch(c client.Client, o *unstructured.Unstructured, text string) error {
	return c.Patch(w.Context(), o.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(text)))
}

const (
	changesSpec   = `{"spec":{"paused":true}}`
	changesImage  = `{"spec":{"image":"a:b"}}`
	changesOthers = `{"metadata":{"annotations":{"groups.tidb.dev/restart":"1"}}}`
)

// S F3: a right to make groups is no right to make pods.
func TestP12AUserWhoMakesAGroupNeedsTheRightToMakePods(t *testing.T) {
	w := withPolicies(t)
	everything := "groups.tidb.dev/*: *"
	mallory, alice := w.user("mallory-too", everything), w.user("alice", everything, "pods: create")
	require.Eventually(t, func() bool {
		return alice.Create(t.Context(), w.object("PDGroup", "probe", nil), client.DryRunAll) == nil
	}, waitFor, tick)
	for _, kind := range v1alpha1.Kinds() {
		t.Run(kind, func(t *testing.T) {
			err := mallory.Create(t.Context(), w.object(kind, "a", nil))
			require.True(t, isForbidden(err, "may not create pods in namespace "+w.namespace), "%v", err)
			require.NoError(t, alice.Create(t.Context(), w.object(kind, "a", nil)))
			o, change := w.object(kind, "a", nil), changesSpec
			if kind == v1alpha1.KindBackup || kind == v1alpha1.KindLogBackup || kind == v1alpha1.KindRestore {
				change = changesImage // these cannot be paused
			}
			require.True(t, isForbidden(w.patch(mallory, o, change), "may not create pods"), "changed")
			assert.NoError(t, w.patch(mallory, o, changesOthers), "annotations make no pod")
			assert.NoError(t, w.patch(alice, o, change))
			assert.NoError(t, mallory.Delete(t.Context(), o))
		})
	}
	t.Run("scaling is free", func(t *testing.T) {
		o := w.stored(w.object("TiKVGroup", "scaled", nil))
		assert.NoError(t, mallory.SubResource("scale").Patch(t.Context(), o.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"replicas":5}}`))))
	})
	t.Run("operators make what others may not", func(t *testing.T) {
		assert.NoError(t, w.operator("pdgroup", installed).Create(t.Context(), w.object("Instance", "b", ours())))
		assert.NoError(t, w.operator("tidbcluster", installed).Create(t.Context(), w.object("TiKVGroup", "b", ours())))
		assert.NoError(t, w.operator("tidbcluster", installed).Create(t.Context(), w.object("Restore", "b", ours())))
		assert.True(t, isForbidden(w.operator("tidbcluster", installed).Create(t.Context(), w.object("Restore", "c", nil)), "writes only what carries the label"))
	})
	t.Run("an account of their name elsewhere is no operator", func(t *testing.T) {
		role := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "tidb-groups-pdgroup-operator"}
		binding := &rbacv1.RoleBinding{RoleRef: role, Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: w.namespace, Name: "pdgroup-operator"}}}
		binding.Namespace, binding.Name = w.namespace, "lookalike"
		require.NoError(t, w.admin.Create(t.Context(), binding))
		lookalike := w.operator("pdgroup", w.namespace)
		require.Eventually(t, func() bool {
			return lookalike.Create(t.Context(), w.object("ConfigMap", "probe", nil), client.DryRunAll) == nil
		}, waitFor, tick)
		assert.True(t, isForbidden(lookalike.Create(t.Context(), w.object("Instance", "c", ours())), "may not create pods"))
	})
}

// S F6: what RBAC lets an operator write in every namespace is still not everybody's.
func TestP12OperatorsWriteOnlyTheirOwnObjects(t *testing.T) {
	w := withPolicies(t)
	const sentence = "writes only what carries the label"
	stranger, own := w.stored(w.object("ConfigMap", "coredns", nil)), w.stored(w.object("ConfigMap", "ours", ours()))
	for _, name := range groups("") {
		name = strings.TrimSuffix(name, "s")
		operator := w.operator(name, installed)
		require.Eventually(t, func() bool { return w.patch(operator, own, `{"data":{"a":"c"}}`) == nil }, waitFor, tick)
		for what, err := range map[string]error{
			"patches a stranger's":      w.patch(operator, stranger, `{"data":{"a":"c"}}`),
			"makes a stranger's ours":   w.patch(operator, stranger, `{"metadata":{"labels":{"app.kubernetes.io/managed-by":"tidb-groups"}}}`),
			"gives ours away":           w.patch(operator, own, `{"metadata":{"labels":{"app.kubernetes.io/managed-by":null}}}`),
			"deletes a stranger's":      operator.Delete(t.Context(), stranger.DeepCopy()),
			"makes one without a label": operator.Create(t.Context(), w.object("ConfigMap", "new", nil)),
			"takes a Lease":             operator.Create(t.Context(), w.object("Lease", "kube-controller-manager", nil)),
		} {
			assert.True(t, isForbidden(err, name+"-operator "+sentence), "%s %s: %v", name, what, err)
		}
		assert.NoError(t, operator.Create(t.Context(), w.object("Lease", name+"-disruption", ours())), "the Lease of its cluster's disruptions")

		leader, other := w.object("Lease", "tidb-groups-"+name, nil), w.object("Lease", "tidb-groups-instance", nil)
		leader.SetNamespace(installed)
		other.SetNamespace(installed)
		assert.NoError(t, operator.Create(t.Context(), leader), "its leader Lease")
		leader.Object["spec"] = map[string]any{"holderIdentity": "you"}
		assert.NoError(t, operator.Update(t.Context(), leader))
		assert.True(t, isForbidden(operator.Create(t.Context(), other), sentence), "another operator's leader Lease")
	}
	t.Run("claims", func(t *testing.T) {
		operator := w.operator("instance", installed)
		label := `{"metadata":{"labels":{"app.kubernetes.io/managed-by":"tidb-groups"}}}`
		restored := w.stored(w.object("PersistentVolumeClaim", "restored", nil))
		require.NoError(t, w.patch(operator, restored, label), "one that was restored without labels")
		theirs := w.stored(w.object("PersistentVolumeClaim", "theirs", map[string]string{"app.kubernetes.io/managed-by": "Helm"}))
		assert.True(t, isForbidden(w.patch(operator, theirs, label), sentence))
		assert.True(t, isForbidden(operator.Delete(t.Context(), theirs.DeepCopy()), sentence))
		require.NoError(t, w.patch(w.admin, theirs, `{"metadata":{"annotations":{"groups.tidb.dev/adopt":"basic-pd-0"}}}`))
		assert.NoError(t, w.patch(operator, theirs, label), "a user has said that it is ours")
		assert.NoError(t, operator.Delete(t.Context(), restored.DeepCopy()))
	})
	t.Run("jobs", func(t *testing.T) {
		operator := w.operator("tidbgroup", installed)
		theirs, own := w.stored(w.object("Job", "theirs", nil)), w.object("Job", "own", ours())
		assert.True(t, isForbidden(operator.Create(t.Context(), w.object("Job", "new", nil)), sentence))
		assert.True(t, isForbidden(operator.Delete(t.Context(), theirs.DeepCopy()), sentence))
		require.NoError(t, operator.Create(t.Context(), own))
		assert.NoError(t, operator.Delete(t.Context(), own))
	})
	t.Run("the finalizer of an Instance that a user has made", func(t *testing.T) {
		o := w.stored(w.object("Instance", "by-hand", nil))
		assert.NoError(t, w.patch(w.operator("instance", installed), o, `{"metadata":{"finalizers":["groups.tidb.dev/instance"]}}`))
		assert.NoError(t, w.patch(w.admin, o, `{"metadata":{"finalizers":null}}`))
	})
	t.Run("others are not looked at", func(t *testing.T) {
		assert.NoError(t, w.patch(w.admin, stranger, `{"data":{"a":"d"}}`))
	})
}

// S F7: pods try basic-pd.prod.svc as basic-pd.prod.svc.svc.cluster.local first.
func TestP12ANamespaceCalledSvcIsRefused(t *testing.T) {
	w := withPolicies(t)
	create := func(name string) error {
		return w.admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, client.DryRunAll)
	}
	require.Eventually(t, func() bool {
		return isForbidden(create("svc"), "a namespace must not be called svc: pods look names such as basic-pd.prod.svc up in it first")
	}, waitFor, tick)
	for _, name := range []string{"svc-a", "a-svc", "prod"} {
		assert.NoError(t, create(name))
	}
}

// U 9, point 10: who edits what a TidbCluster or a group has made is told where to.
func TestAnEditOfAnOwnedObjectNamesItsOwner(t *testing.T) {
	w := withPolicies(t)
	owner := func(kind, name string) []any {
		return []any{map[string]any{"apiVersion": "groups.tidb.dev/v1alpha1", "kind": kind, "name": name, "uid": "uid-of-" + name, "controller": true}}
	}
	labels := func(component, umbrella string) map[string]string {
		out := ours()
		out["app.kubernetes.io/component"] = component
		if umbrella != "" {
			out["groups.tidb.dev/tidbcluster"] = umbrella
		}
		return out
	}
	for _, c := range []struct{ kind, name, component, umbrella, ownerKind, owner, says string }{
		{"PDGroup", "basic-pd", "pd", "basic", "TidbCluster", "basic", "edit spec.pd of the TidbCluster: kubectl -n %s edit tidbcluster basic"},
		{"TiKVGroup", "basic-tikv", "tikv", "basic", "TidbCluster", "basic", "edit spec.tikv[] of the TidbCluster: kubectl -n %s edit tidbcluster basic"},
		{"TiKVGroup", "basic-tikv-hot", "tikv", "basic", "TidbCluster", "basic", "edit spec.tikv[hot] of the TidbCluster: kubectl -n %s edit tidbcluster basic"},
		{"TiDBGroup", "basic-tidb-a-b", "tidb", "basic", "TidbCluster", "basic", "edit spec.tidb[a-b] of the TidbCluster: kubectl -n %s edit tidbcluster basic"},
		{"TiFlashGroup", "basic-tiflash", "tiflash", "basic", "TidbCluster", "basic", "edit spec.tiflash[] of the TidbCluster: kubectl -n %s edit tidbcluster basic"},
		{"TiProxyGroup", "basic-tiproxy", "tiproxy", "basic", "TidbCluster", "basic", "edit spec.tiproxy[] of the TidbCluster: kubectl -n %s edit tidbcluster basic"},
		{"Instance", "basic-tikv-hot-0", "tikv", "basic", "TiKVGroup", "basic-tikv-hot", "edit spec.tikv[hot] of the TidbCluster: kubectl -n %s edit tidbcluster basic"},
		{"Instance", "alone-tikv-0", "tikv", "", "TiKVGroup", "alone-tikv", "edit the group: kubectl -n %s edit tikvgroup alone-tikv"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := w.object(c.kind, c.name, labels(c.component, c.umbrella))
			require.NoError(t, unstructured.SetNestedSlice(o.Object, owner(c.ownerKind, c.owner), "metadata", "ownerReferences"))
			w.stored(o)
			err := w.patch(w.admin, o, changesSpec)
			assert.True(t, isForbidden(err, c.kind+" "+c.name+" belongs to "+c.ownerKind+" "+c.owner+", which would set its spec back: "+fmt.Sprintf(c.says, w.namespace)), "%v", err)
			assert.NoError(t, w.patch(w.admin, o, changesOthers), "annotations are a user's")
			if c.kind == "Instance" {
				assert.NoError(t, w.patch(w.operator("tikvgroup", installed), o, changesSpec))
				return
			}
			assert.NoError(t, w.patch(w.operator("tidbcluster", installed), o, changesSpec))
			if c.kind == "PDGroup" {
				return // it cannot be scaled before it is Bootstrapped
			}
			assert.NoError(t, w.admin.SubResource("scale").Patch(t.Context(), o.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"replicas":5}}`))))
			err = w.patch(w.admin, o, `{"spec":{"replicas":3}}`)
			assert.Equal(t, c.kind != "TiDBGroup", isForbidden(err, "would set its spec back"), "an autoscaler's: %v", err)
			err = w.patch(w.admin, o, `{"spec":{"replicas":4,"version":"v8.5.6"}}`)
			assert.True(t, isForbidden(err, "would set its spec back"), "%v", err)
		})
	}
	t.Run("what has no owner is free", func(t *testing.T) {
		assert.NoError(t, w.patch(w.admin, w.stored(w.object("TiKVGroup", "alone", ours())), changesSpec))
	})
}

// The policies can go, and no operator needs them: without the bindings nothing is refused.
func TestThePoliciesCanBeRemoved(t *testing.T) {
	w := withPolicies(t)
	mallory := w.user("mallory-at-last", "groups.tidb.dev/*: *")
	for _, o := range render(t, "overlays/default") {
		if o.GetKind() == "ValidatingAdmissionPolicyBinding" {
			require.NoError(t, w.admin.Delete(t.Context(), o))
		}
	}
	assert.Eventually(t, func() bool {
		return mallory.Create(t.Context(), w.object("Instance", "a", nil), client.DryRunAll) == nil
	}, waitFor, tick)
}

// Kubernetes' own roles know the kinds: view reads, edit writes all but Instances, and
// who administers a namespace may annotate and delete those.
func TestViewEditAndAdminKnowTheKinds(t *testing.T) {
	const (
		read  = "get list watch"
		write = "create delete deletecollection patch update"
		scale = "get patch update"
	)
	want := map[string]map[string]string{"view": {}, "edit": {}, "admin": {}}
	for role, may := range want {
		may["instances"] = read
		for _, kind := range append(groups(""), "tidbclusters", "backups", "backupschedules", "logbackups", "restores") {
			may[kind] = read
			if role == "view" {
				continue
			}
			may[kind] = write + " " + read
			if slices.Contains(groups(""), kind) {
				may[kind+"/scale"] = scale
			}
		}
	}
	want["admin"]["instances"] = "delete patch update " + read
	for role, may := range want {
		var rules []rbacv1.PolicyRule
		for _, r := range every[rbacv1.ClusterRole](t, render(t, "overlays/minimal"), "ClusterRole") {
			if r.Labels["rbac.authorization.k8s.io/aggregate-to-"+role] == "true" {
				rules = append(rules, r.Rules...)
			}
		}
		var lines []string
		for resource, verbs := range may {
			list := strings.Fields(verbs)
			slices.Sort(list)
			lines = append(lines, "groups.tidb.dev/"+resource+": "+strings.Join(list, " "))
		}
		slices.Sort(lines)
		assert.Equal(t, lines, rights(rules), role)
	}
}
