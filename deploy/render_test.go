package deploy_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// installed is the namespace that the overlays install into.
const installed = "tidb-groups-system"

// operators returns the names of all operators, sorted.
func operators() []string {
	out := v1alpha1.Operators()
	slices.Sort(out)
	return out
}

// groups returns the plurals of all kinds of groups but one.
func groups(but string) []string {
	var out []string
	for _, c := range v1alpha1.ComponentTable() {
		if c.Resource != but {
			out = append(out, c.Resource)
		}
	}
	return out
}

func components() []string {
	return []string{"debug-logging", "grafana", "high-availability", "namespaced", "namespaces", "networkpolicy", "one-process", "policies", "prometheus", "shard", "shards", "tls", "tls-issuer", "tls-self-signed"}
}

// args are those that every operator is started with.
func args() []string {
	return []string{"--leader-elect=true", "--metrics-bind-address=:8443", "--metrics-secure=true"}
}

// reviews are the rights to ask who a reader of metrics is, and may do.
func reviews() []string {
	return []string{"authentication.k8s.io/tokenreviews: create", "authorization.k8s.io/subjectaccessreviews: create"}
}

// access are the roles for people.
func access() []string { return []string{"tidb-groups-admin", "tidb-groups-edit", "tidb-groups-view"} }

// render builds one directory of this module as "kubectl apply -k" does.
func render(t *testing.T, dir string) []*unstructured.Unstructured {
	t.Helper()
	return build(t, filesys.MakeFsOnDisk(), dir)
}

// renderKustomization builds a kustomization that stands in the overlays'
// directory, as a user's own would.
func renderKustomization(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	memory := filesys.MakeFsInMemory()
	for _, top := range []string{"bases", "components", "crds", "overlays"} {
		require.NoError(t, filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			return memory.WriteFile("/"+path, content)
		}))
	}
	require.NoError(t, memory.WriteFile("/overlays/own/kustomization.yaml", []byte(text)))
	return build(t, memory, "/overlays/own")
}

func build(t *testing.T, files filesys.FileSystem, dir string) []*unstructured.Unstructured {
	t.Helper()
	rendered, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(files, dir)
	require.NoError(t, err)
	var out []*unstructured.Unstructured
	for _, resource := range rendered.Resources() {
		text, err := resource.MarshalJSON() // what AsYAML writes as YAML
		require.NoError(t, err)
		o := &unstructured.Unstructured{}
		require.NoError(t, json.Unmarshal(text, &o.Object))
		out = append(out, o)
	}
	return out
}

// every returns the objects of a kind, typed, by name.
func every[T any](t *testing.T, objects []*unstructured.Unstructured, kind string) map[string]T {
	t.Helper()
	out := map[string]T{}
	for _, o := range objects {
		if o.GetKind() != kind {
			continue
		}
		var typed T
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, &typed, true))
		require.NotContains(t, out, o.GetName())
		out[o.GetName()] = typed
	}
	return out
}

func names(objects []*unstructured.Unstructured, kind string) []string {
	var out []string
	for _, o := range objects {
		if o.GetKind() == kind {
			out = append(out, o.GetName())
		}
	}
	slices.Sort(out)
	return out
}

func TestOverlaysInstallWhatTheySay(t *testing.T) {
	for overlay, want := range map[string][]string{
		"default": operators(),
		"minimal": {"instance", "pdgroup", "tikvgroup"},
	} {
		t.Run(overlay, func(t *testing.T) {
			objects := render(t, "overlays/"+overlay)
			var deployments, roles, bindings, leaders []string
			for _, name := range want {
				deployments = append(deployments, name+"-operator")
				bindings = append(bindings, "tidb-groups-"+name+"-operator")
				leaders = append(leaders, name+"-operator-leader-election")
			}
			assert.Equal(t, deployments, names(objects, "Deployment"))
			assert.Equal(t, deployments, names(objects, "ServiceAccount"))
			roles = append(slices.Clone(bindings), access()...)
			slices.Sort(roles)
			assert.Equal(t, roles, names(objects, "ClusterRole"))
			assert.Equal(t, bindings, names(objects, "ClusterRoleBinding"))
			policies := []string{"tidb-groups-annotations", "tidb-groups-namespaces", "tidb-groups-operators", "tidb-groups-owned-objects", "tidb-groups-pod-annotations", "tidb-groups-pod-makers"}
			if overlay != "default" {
				policies = nil
			}
			assert.Equal(t, policies, names(objects, "ValidatingAdmissionPolicy"))
			assert.Equal(t, policies, names(objects, "ValidatingAdmissionPolicyBinding"))
			assert.Equal(t, leaders, names(objects, "Role"))
			assert.Equal(t, leaders, names(objects, "RoleBinding"))
			assert.Len(t, names(objects, "CustomResourceDefinition"), len(v1alpha1.Kinds()))
			assert.Equal(t, []string{installed}, names(objects, "Namespace"))
			for _, o := range objects {
				assert.Equal(t, "tidb-groups", o.GetLabels()["app.kubernetes.io/part-of"], "%s %s", o.GetKind(), o.GetName())
				assert.Empty(t, o.GetLabels()["app.kubernetes.io/managed-by"], "that label is for what the operators make")
			}
			bindingsHold(t, objects)
		})
	}
}

// bindingsHold checks that every binding gives a role that is rendered to a
// service account that a Deployment uses.
func bindingsHold(t *testing.T, objects []*unstructured.Unstructured) {
	t.Helper()
	check := func(name string, ref rbacv1.RoleRef, subjects []rbacv1.Subject) {
		assert.Contains(t, names(objects, ref.Kind), ref.Name, name)
		require.Len(t, subjects, 1)
		assert.Contains(t, names(objects, "ServiceAccount"), subjects[0].Name, name)
		assert.NotEmpty(t, subjects[0].Namespace, name)
	}
	for name, b := range every[rbacv1.ClusterRoleBinding](t, objects, "ClusterRoleBinding") {
		check(name, b.RoleRef, b.Subjects)
	}
	for name, b := range every[rbacv1.RoleBinding](t, objects, "RoleBinding") {
		check(name, b.RoleRef, b.Subjects)
	}
	accounts := names(objects, "ServiceAccount")
	for name, d := range every[appsv1.Deployment](t, objects, "Deployment") {
		assert.Contains(t, accounts, d.Spec.Template.Spec.ServiceAccountName, name)
	}
}

func TestOneProcessHasTheRightsOfAllAndNothingRunsBesideIt(t *testing.T) {
	objects, apart := render(t, "overlays/one-process"), render(t, "overlays/default")
	assert.Equal(t, []string{"all-operator"}, names(objects, "Deployment"))
	assert.Equal(t, []string{"all-operator"}, names(objects, "ServiceAccount"))
	assert.Equal(t, []string{"all-operator-metrics"}, names(objects, "Service"))
	for _, kind := range []string{"ClusterRole", "ClusterRoleBinding", "ValidatingAdmissionPolicy", "CustomResourceDefinition"} {
		assert.Equal(t, names(apart, kind), names(objects, kind))
	}
	bindingsHold(t, objects)
	c := every[appsv1.Deployment](t, objects, "Deployment")["all-operator"].Spec.Template.Spec.Containers[0]
	assert.Equal(t, "384Mi", c.Resources.Limits.Memory().String())
	assert.False(t, namesHeap(c), "the heap follows the limit on memory")
}

// namesHeap says that a container has a heap that does not follow its limit on memory.
func namesHeap(c corev1.Container) bool {
	return slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == "GOMEMLIMIT" })
}

func TestEverySubsetOfOperatorsRenders(t *testing.T) {
	all := operators()
	for set := 1; set < 1<<len(all); set++ {
		text := "namespace: elsewhere\nresources:\n"
		var want []string
		for i, name := range all {
			if set&(1<<i) != 0 {
				text += "- ../../bases/" + name + "\n"
				want = append(want, name+"-operator")
			}
		}
		objects := renderKustomization(t, text)
		require.Equal(t, want, names(objects, "Deployment"))
		require.Len(t, objects, 7*len(want))
		bindingsHold(t, objects)
	}
}

func TestOperatorsRunUnprivilegedWithProbesAndLimits(t *testing.T) {
	objects := render(t, "overlays/default")
	services := every[corev1.Service](t, objects, "Service")
	for name, d := range every[appsv1.Deployment](t, objects, "Deployment") {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, installed, d.Namespace)
			assert.EqualValues(t, 1, *d.Spec.Replicas)
			pod := d.Spec.Template.Spec
			assert.Equal(t, name, pod.ServiceAccountName)
			assert.EqualValues(t, 15, *pod.TerminationGracePeriodSeconds)
			assert.Empty(t, pod.PriorityClassName)
			assert.True(t, *pod.SecurityContext.RunAsNonRoot)
			assert.Equal(t, corev1.SeccompProfileTypeRuntimeDefault, pod.SecurityContext.SeccompProfile.Type)
			require.Len(t, pod.Containers, 1)
			c := pod.Containers[0]
			assert.Equal(t, "tidb-groups/"+name+":dev", c.Image)
			assert.Empty(t, c.Command, "the image's entrypoint is the operator")
			assert.Equal(t, args(), c.Args)
			assert.False(t, *c.SecurityContext.AllowPrivilegeEscalation)
			assert.True(t, *c.SecurityContext.ReadOnlyRootFilesystem)
			assert.Equal(t, []corev1.Capability{"ALL"}, c.SecurityContext.Capabilities.Drop)
			ports := map[string]int32{}
			for _, p := range c.Ports {
				ports[p.Name] = p.ContainerPort
			}
			assert.Equal(t, map[string]int32{"metrics": 8443, "probes": 8081}, ports)
			assert.Equal(t, "/healthz", c.LivenessProbe.HTTPGet.Path)
			assert.Equal(t, "/readyz", c.ReadinessProbe.HTTPGet.Path)
			assert.Equal(t, "probes", c.LivenessProbe.HTTPGet.Port.StrVal)
			assert.Equal(t, "probes", c.ReadinessProbe.HTTPGet.Port.StrVal)
			assert.Equal(t, "20m", c.Resources.Requests.Cpu().String())
			assert.Equal(t, "32Mi", c.Resources.Requests.Memory().String())
			assert.Equal(t, "128Mi", c.Resources.Limits.Memory().String())
			assert.True(t, c.Resources.Limits.Cpu().IsZero(), "a limit on CPU only makes it slow")
			assert.False(t, namesHeap(c), "the heap follows the limit on memory")

			service := services[name+"-metrics"]
			require.NotEmpty(t, service.Spec.Selector)
			for key, value := range service.Spec.Selector {
				assert.Equal(t, value, d.Spec.Template.Labels[key], "the Service finds this operator and no other")
			}
			for other, d := range every[appsv1.Deployment](t, objects, "Deployment") {
				if other != name {
					assert.NotEqual(t, service.Spec.Selector["app.kubernetes.io/name"], d.Spec.Template.Labels["app.kubernetes.io/name"])
				}
			}
		})
	}
}

func TestComponentsChangeWhatTheySay(t *testing.T) {
	with := func(t *testing.T, component string) []*unstructured.Unstructured {
		t.Helper()
		return renderKustomization(t, "namespace: own\nresources: [../default]\ncomponents: [../../components/"+component+"]\n")
	}
	t.Run("debug-logging makes every operator talk", func(t *testing.T) {
		for name, d := range every[appsv1.Deployment](t, with(t, "debug-logging"), "Deployment") {
			assert.Equal(t, append(args(), "--log-level=debug"), d.Spec.Template.Spec.Containers[0].Args, name)
		}
	})
	t.Run("high-availability runs two of each on two nodes", func(t *testing.T) {
		deployments := every[appsv1.Deployment](t, with(t, "high-availability"), "Deployment")
		require.Len(t, deployments, len(operators()))
		for name, d := range deployments {
			assert.EqualValues(t, 2, *d.Spec.Replicas, name)
			terms := d.Spec.Template.Spec.Affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution
			require.Len(t, terms, 1)
			assert.Equal(t, "kubernetes.io/hostname", terms[0].PodAffinityTerm.TopologyKey)
			assert.Equal(t, []string{"app.kubernetes.io/name"}, terms[0].PodAffinityTerm.MatchLabelKeys)
			assert.Contains(t, d.Spec.Template.Labels, "app.kubernetes.io/name")
			assert.Equal(t, "tidb-groups", d.Spec.Template.Labels["app.kubernetes.io/part-of"])
		}
	})
	t.Run("namespaced leaves no right outside the namespace", func(t *testing.T) {
		objects := with(t, "namespaced")
		assert.Empty(t, names(objects, "ClusterRole"))
		assert.Empty(t, names(objects, "ClusterRoleBinding"))
		assert.Empty(t, names(objects, "ValidatingAdmissionPolicy"))
		assert.Empty(t, names(objects, "ValidatingAdmissionPolicyBinding"))
		assert.Len(t, names(objects, "Role"), 2*len(operators()))
		bindingsHold(t, objects)
		for _, o := range objects {
			if kind := o.GetKind(); kind == "Role" || kind == "RoleBinding" {
				assert.Equal(t, "own", o.GetNamespace(), o.GetName())
			}
		}
		for name, d := range every[appsv1.Deployment](t, objects, "Deployment") {
			c := d.Spec.Template.Spec.Containers[0]
			assert.Contains(t, c.Args, "--namespaces=$(POD_NAMESPACE)", name)
			assert.Equal(t, "--metrics-secure=false", c.Args[len(c.Args)-1], "no operator there may ask who a reader is")
			at := slices.IndexFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == "POD_NAMESPACE" })
			require.GreaterOrEqual(t, at, 0)
			assert.Equal(t, "metadata.namespace", c.Env[at].ValueFrom.FieldRef.FieldPath)
			assert.True(t, slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == "GOGC" }), "what was there stays")
		}
	})
	t.Run("namespaces leaves rights in those that are named", func(t *testing.T) {
		objects := render(t, "overlays/namespaces")
		bindings := every[rbacv1.ClusterRoleBinding](t, objects, "ClusterRoleBinding")
		require.Len(t, bindings, len(operators()))
		for name, b := range bindings {
			assert.Equal(t, "tidb-groups-no-namespace", b.RoleRef.Name, name)
		}
		assert.Equal(t, reviews(), rights(every[rbacv1.ClusterRole](t, objects, "ClusterRole")["tidb-groups-no-namespace"].Rules), "who reads its metrics")
		var rights []string
		for _, o := range objects {
			if o.GetKind() == "RoleBinding" && o.GetNamespace() != installed {
				rights = append(rights, o.GetNamespace()+"/"+o.GetName())
			}
		}
		var want []string
		for _, namespace := range []string{"blog", "shop"} {
			for _, name := range operators() {
				want = append(want, namespace+"/tidb-groups-"+name+"-operator")
			}
		}
		assert.ElementsMatch(t, want, rights)
		lists := every[corev1.ConfigMap](t, objects, "ConfigMap")
		for name, d := range every[appsv1.Deployment](t, objects, "Deployment") {
			c := d.Spec.Template.Spec.Containers[0]
			assert.Contains(t, c.Args, "--namespaces=$(NAMESPACES)", name)
			at := slices.IndexFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == "NAMESPACES" })
			require.GreaterOrEqual(t, at, 0)
			from := c.Env[at].ValueFrom.ConfigMapKeyRef
			assert.Equal(t, "shop,blog", lists[from.Name].Data[from.Key])
			assert.True(t, slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == "GOGC" }), "what was there stays")
		}
	})
	t.Run("prometheus finds the metrics of every operator", func(t *testing.T) {
		objects := with(t, "prometheus")
		require.Equal(t, []string{"tidb-groups-operators"}, names(objects, "ServiceMonitor"))
		for _, o := range objects {
			if o.GetKind() != "ServiceMonitor" {
				continue
			}
			assert.Equal(t, "own", o.GetNamespace())
			endpoints, _, err := unstructured.NestedSlice(o.Object, "spec", "endpoints")
			require.NoError(t, err)
			require.Len(t, endpoints, 1)
			assert.Equal(t, true, endpoints[0].(map[string]any)["honorLabels"], "the namespace of a series is that of its object, not of the operators")
			selector, _, err := unstructured.NestedStringMap(o.Object, "spec", "selector", "matchLabels")
			require.NoError(t, err)
			services := every[corev1.Service](t, objects, "Service")
			require.Len(t, services, len(operators()))
			for name, s := range services {
				for key, value := range selector {
					assert.Equal(t, value, s.Labels[key], name)
				}
			}
		}
		require.ElementsMatch(t, []string{"tidb-groups-clusters", "tidb-groups-backups"}, names(objects, "PrometheusRule"))
		require.Equal(t, []string{"tidb-groups-databases"}, names(objects, "PodMonitor"))
		reader := every[rbacv1.ClusterRole](t, objects, "ClusterRole")["tidb-groups-metrics-reader"]
		assert.Equal(t, []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}}, reader.Rules)
	})
	t.Run("prometheus before namespaced: metrics are plain, and no Role names a path", func(t *testing.T) {
		objects := with(t, "prometheus, ../../components/namespaced")
		require.NotContains(t, append(names(objects, "Role"), names(objects, "ClusterRole")...), "tidb-groups-metrics-reader")
		for _, o := range objects {
			if o.GetKind() == "ServiceMonitor" {
				endpoints, _, err := unstructured.NestedSlice(o.Object, "spec", "endpoints")
				require.NoError(t, err)
				require.Len(t, endpoints, 1)
				assert.Equal(t, "http", endpoints[0].(map[string]any)["scheme"])
			}
		}
		require.NotEmpty(t, names(objects, "ServiceMonitor"))
	})
	t.Run("networkpolicy lets the operators be reached for their metrics only", func(t *testing.T) {
		objects := with(t, "networkpolicy")
		policies := every[networkingv1.NetworkPolicy](t, objects, "NetworkPolicy")
		require.Len(t, policies, 1)
		p := policies["tidb-groups-operators"]
		selector, err := metav1.LabelSelectorAsSelector(&p.Spec.PodSelector)
		require.NoError(t, err)
		for name, d := range every[appsv1.Deployment](t, objects, "Deployment") {
			assert.True(t, selector.Matches(labels.Set(d.Spec.Template.Labels)), name)
			assert.Equal(t, p.Namespace, d.Namespace)
		}
		for name, d := range every[appsv1.Deployment](t, render(t, "overlays/one-process"), "Deployment") {
			assert.True(t, selector.Matches(labels.Set(d.Spec.Template.Labels)), name)
		}
		assert.Equal(t, []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}, p.Spec.PolicyTypes)
		require.Len(t, p.Spec.Ingress, 1)
		require.Len(t, p.Spec.Ingress[0].Ports, 1)
		assert.Equal(t, "metrics", p.Spec.Ingress[0].Ports[0].Port.StrVal)
	})
	t.Run("tls lets the operators of groups get Secrets, and none list them", func(t *testing.T) {
		for _, other := range []string{"", ", ../../components/namespaced"} {
			assert.Equal(t, []string{
				"tidb-groups-pdgroup-operator secrets: get", "tidb-groups-ticdcgroup-operator secrets: get", "tidb-groups-tidbgroup-operator secrets: create get",
				"tidb-groups-tiflashgroup-operator secrets: get", "tidb-groups-tikvgroup-operator secrets: get", "tidb-groups-tiproxygroup-operator secrets: get",
			}, grown(t, "tls", other))
		}
	})
	t.Run("tls-issuer and tls-self-signed let the operator of PDGroups alone have certificates made", func(t *testing.T) {
		for _, other := range []string{"", ", ../../components/namespaced"} {
			assert.Equal(t, []string{
				"tidb-groups-pdgroup-operator cert-manager.io/certificates: create get patch",
				"tidb-groups-pdgroup-operator cert-manager.io/clusterissuers: get", "tidb-groups-pdgroup-operator cert-manager.io/issuers: get",
			}, grown(t, "tls-issuer", other))
			assert.Equal(t, []string{"tidb-groups-pdgroup-operator secrets: create update"}, grown(t, "tls-self-signed", other))
		}
	})
	t.Run("all of them go together, over either overlay", func(t *testing.T) {
		for _, overlay := range []string{"default", "minimal"} {
			text := "namespace: own\nresources: [../" + overlay + "]\ncomponents:\n"
			for _, c := range components() {
				if c == "policies" && overlay == "default" || c == "namespaces" || strings.HasPrefix(c, "shard") {
					continue // it is there already; they are namespaced's other choices
				}
				text += "- ../../components/" + c + "\n"
			}
			bindingsHold(t, renderKustomization(t, text))
		}
	})
	t.Run("and every one is tested here", func(t *testing.T) {
		entries, err := os.ReadDir("components")
		require.NoError(t, err)
		var found []string
		for _, e := range entries {
			found = append(found, e.Name())
		}
		assert.Equal(t, components(), found)
	})
}

// rights lists what the rules of a role allow, one line per resource:
// "group/resource: verbs", both sorted.
func rights(rules []rbacv1.PolicyRule) []string {
	verbs := map[string][]string{}
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				key := strings.TrimPrefix(group+"/"+resource, "/")
				for _, name := range rule.ResourceNames {
					key += " " + name
				}
				verbs[key] = append(verbs[key], rule.Verbs...)
			}
		}
	}
	var out []string
	for key, list := range verbs {
		slices.Sort(list)
		out = append(out, fmt.Sprintf("%s: %s", key, strings.Join(slices.Compact(list), " ")))
	}
	slices.Sort(out)
	return out
}

// The table of who may do what. A change of it is a decision: the rest of the
// suite relies on who may not.
func TestOperatorsHaveExactlyTheListedRights(t *testing.T) {
	const (
		read   = "get list watch"
		own    = "create delete get list patch watch"
		events = "events.k8s.io/events: create patch"
	)
	group := func(name string, more ...string) []string {
		out := append([]string{
			"apps/controllerrevisions: " + own,
			"configmaps: " + own,
			events,
			"groups.tidb.dev/instances/status: patch",
			"groups.tidb.dev/instances: " + own,
			"groups.tidb.dev/" + name + "/finalizers: update",
			"groups.tidb.dev/" + name + "/status: patch",
			"coordination.k8s.io/leases: create get list update watch",
			"groups.tidb.dev/" + name + ": " + read,
			"nodes: " + read,
			"persistentvolumeclaims: " + read,
			"policy/poddisruptionbudgets: create get list patch watch",
			"services: " + own,
		}, more...)
		for _, other := range groups(name) {
			out = append(out, "groups.tidb.dev/"+other+": "+read)
		}
		slices.Sort(out)
		return out
	}
	golden := map[string][]string{
		"instance": {
			events,
			"groups.tidb.dev/instances/finalizers: update",
			"groups.tidb.dev/instances/status: patch",
			"groups.tidb.dev/instances: get list patch watch",
			"nodes: get",
			"persistentvolumeclaims: " + own,
			"persistentvolumes: get",
			"pods: " + own,
			"storage.k8s.io/storageclasses: " + read,
			"storage.k8s.io/volumeattributesclasses: get",
		},
		"pdgroup":      group("pdgroups"),
		"tikvgroup":    group("tikvgroups"),
		"tidbgroup":    group("tidbgroups", "secrets: create", "batch/jobs: create delete get list watch", "pods: list"),
		"tiflashgroup": group("tiflashgroups"),
		"tiproxygroup": group("tiproxygroups"),
		"ticdcgroup":   group("ticdcgroups"),
		"backup": {
			events,
			"batch/jobs: create delete get list watch",
			"groups.tidb.dev/backups/finalizers: update", "groups.tidb.dev/logbackups/finalizers: update", "groups.tidb.dev/restores/finalizers: update",
			"groups.tidb.dev/backups/status: patch", "groups.tidb.dev/backupschedules/status: patch", "groups.tidb.dev/logbackups/status: patch", "groups.tidb.dev/restores/status: patch",
			"groups.tidb.dev/backups: " + own, "groups.tidb.dev/logbackups: get list patch watch",
			"groups.tidb.dev/backupschedules: " + read, "groups.tidb.dev/pdgroups: " + read, "groups.tidb.dev/restores: " + read, "groups.tidb.dev/tidbgroups: " + read,
			"pods: " + read,
		},
		"tidbcluster": {
			events,
			"groups.tidb.dev/tidbclusters/finalizers: update",
			"groups.tidb.dev/tidbclusters/status: patch",
			"groups.tidb.dev/tidbclusters: " + read,
			"groups.tidb.dev/restores: " + own, // of spec.bootstrapFrom
		},
	}
	for _, resource := range groups("") {
		golden["instance"] = append(golden["instance"], "groups.tidb.dev/"+resource+": get")
		golden["tidbcluster"] = append(golden["tidbcluster"], "groups.tidb.dev/"+resource+": "+own)
	}
	objects := render(t, "overlays/default")
	roles := every[rbacv1.ClusterRole](t, objects, "ClusterRole")
	local := every[rbacv1.Role](t, objects, "Role")
	for _, name := range operators() {
		t.Run(name, func(t *testing.T) {
			assert.ElementsMatch(t, append(golden[name], reviews()...), rights(roles["tidb-groups-"+name+"-operator"].Rules))
			own := []string{
				"coordination.k8s.io/leases tidb-groups-" + name + ": get update",
				"coordination.k8s.io/leases: create",
				"events.k8s.io/events: create patch",
				"events: create patch",
			}
			if slices.Contains([]string{"pdgroup", "tikvgroup", "tidbgroup", "tiproxygroup", "ticdcgroup", "backup"}, name) {
				own = append(own, "pods: get") // its own, for the image that it runs from
			}
			assert.Equal(t, own, rights(local[name+"-operator-leader-election"].Rules), "only its own leader lease")
		})
	}
}

func TestSensitiveRightsBelongToAtMostOneOperator(t *testing.T) {
	roles := every[rbacv1.ClusterRole](t, render(t, "overlays/default"), "ClusterRole")
	reading := []string{"get", "list", "watch"}
	for name, role := range roles {
		if slices.Contains(access(), name) {
			continue // for people
		}
		for _, rule := range role.Rules {
			writes := slices.ContainsFunc(rule.Verbs, func(verb string) bool { return !slices.Contains(reading, verb) })
			for _, resource := range rule.Resources {
				assert.NotContains(t, append(slices.Clone(rule.Verbs), resource), "*", "%s asks for everything", name)
				assert.NotContains(t, rule.APIGroups, "*", "%s asks for every group", name)
				assert.NotContains(t, []string{"pods/exec", "pods/eviction", "serviceaccounts", "roles", "clusterroles", "rolebindings"}, resource, name)
				if slices.Contains(groups(""), resource) && writes {
					assert.Equal(t, "tidb-groups-tidbcluster-operator", name, "only the umbrella writes %s", resource)
				}
				switch resource {
				case "secrets":
					assert.Equal(t, "tidb-groups-tidbgroup-operator", name, "only the tidbgroup operator makes a password")
					assert.Equal(t, []string{"create"}, rule.Verbs, "%s may not read secrets", name)
				case "jobs":
					assert.Contains(t, []string{"tidb-groups-tidbgroup-operator", "tidb-groups-backup-operator"}, name, "only they run anything once")
				case "pods":
					if name == "tidb-groups-tidbgroup-operator" {
						assert.Equal(t, []string{"list"}, rule.Verbs, "it reads how the pods of its Jobs ended, and watches none")
						break
					}
					if name == "tidb-groups-backup-operator" {
						assert.False(t, writes, "it watches those of its Jobs")
						break
					}
					assert.Equal(t, "tidb-groups-instance-operator", name, "only the instance operator knows %s", resource)
				case "persistentvolumeclaims":
					if writes {
						assert.Equal(t, "tidb-groups-instance-operator", name, "only the instance operator writes %s", resource)
					}
				case "nodes", "storageclasses", "volumeattributesclasses", "persistentvolumes":
					assert.False(t, writes, "%s may only look at %s", name, resource)
				}
			}
		}
	}
}

// grown are the rights that a component adds, beside another one.
func grown(t *testing.T, component, other string) []string {
	t.Helper()
	render := func(components string) []*unstructured.Unstructured {
		return renderKustomization(t, "namespace: own\nresources: [../default]\ncomponents: ["+components+other+"]\n")
	}
	kind := map[bool]string{true: "ClusterRole", false: "Role"}[other == ""]
	was := every[rbacv1.ClusterRole](t, render("../../components/debug-logging"), kind)
	var out []string
	for name, role := range every[rbacv1.ClusterRole](t, render("../../components/"+component), kind) {
		more := rights(role.Rules)
		for _, right := range rights(was[name].Rules) {
			more = slices.DeleteFunc(more, func(r string) bool { return r == right })
		}
		for _, right := range more {
			out = append(out, name+" "+right)
		}
	}
	slices.Sort(out)
	return out
}
