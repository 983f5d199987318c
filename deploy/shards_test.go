package deploy_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// identities of objects: kind, namespace and name.
func identities(objects []*unstructured.Unstructured) []string {
	var out []string
	for _, o := range objects {
		out = append(out, o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName())
	}
	return out
}

func TestSetsOfOperatorsHaveNoObjectInCommon(t *testing.T) {
	shared, a, b := render(t, "overlays/shards"), render(t, "overlays/shards/a"), render(t, "overlays/shards/b")
	together := slices.Concat(identities(shared), identities(a), identities(b), identities(render(t, "overlays/default")))
	slices.Sort(together)
	var twice []string
	for i := 1; i < len(together); i++ {
		if together[i] == together[i-1] {
			twice = append(twice, together[i])
		}
	}
	for _, one := range twice {
		assert.Regexp(t, "^(CustomResourceDefinition|ValidatingAdmissionPolicy(Binding)?) |^ClusterRole /tidb-groups-(admin|edit|view)$", one, "the default set has it, and no shard")
	}
	assert.Empty(t, names(shared, "Deployment"))
	assert.Len(t, names(shared, "CustomResourceDefinition"), len(names(render(t, "overlays/default"), "CustomResourceDefinition")))
}

func TestASetOfOperatorsIsTheDefaultOneForItsShard(t *testing.T) {
	whole := render(t, "overlays/default")
	roles := every[rbacv1.ClusterRole](t, whole, "ClusterRole")
	for _, set := range []string{"a", "b"} {
		t.Run(set, func(t *testing.T) {
			objects := render(t, "overlays/shards/"+set)
			bindingsHold(t, objects)
			assert.Equal(t, names(whole, "Deployment"), names(objects, "Deployment"))
			assert.Equal(t, []string{"tidb-groups-" + set}, names(objects, "Namespace"))
			lists := every[corev1.ConfigMap](t, objects, "ConfigMap")
			for name, d := range every[appsv1.Deployment](t, objects, "Deployment") {
				c := d.Spec.Template.Spec.Containers[0]
				assert.Equal(t, append(args(), "--shard=$(SHARD)"), c.Args, name)
				at := slices.IndexFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == "SHARD" })
				require.GreaterOrEqual(t, at, 0)
				from := c.Env[at].ValueFrom.ConfigMapKeyRef
				assert.Equal(t, set, lists[from.Name].Data[from.Key])
			}
			for _, name := range operators() {
				assert.Equal(t, roles["tidb-groups-"+name+"-operator"].Rules, every[rbacv1.ClusterRole](t, objects, "ClusterRole")["tidb-groups-"+name+"-operator-"+set].Rules, name)
				leader := every[rbacv1.Role](t, objects, "Role")[name+"-operator-leader-election"]
				assert.Equal(t, []string{"tidb-groups-" + name + "-" + set}, leader.Rules[1].ResourceNames)
			}
			for name, binding := range every[rbacv1.ClusterRoleBinding](t, objects, "ClusterRoleBinding") {
				assert.Equal(t, "tidb-groups-"+set, binding.Subjects[0].Namespace, name)
			}
		})
	}
}

// A component that comes before shard may bring what shard has to change.
func TestASetOfOperatorsMayHaveOtherComponents(t *testing.T) {
	for _, component := range components() {
		if slices.Contains([]string{"namespaced", "namespaces", "policies", "shard", "shards"}, component) {
			continue // they say themselves where the operators act, or are for all sets
		}
		t.Run(component, func(t *testing.T) {
			objects := renderKustomization(t, "namespace: own\nresources: [../shards/operators]\ncomponents: [../../components/"+component+", ../../components/shard]\n"+
				"configMapGenerator: [{name: tidb-groups-shard, literals: [shard=c]}]\n")
			bindingsHold(t, objects)
			for name, d := range every[appsv1.Deployment](t, objects, "Deployment") {
				assert.Contains(t, d.Spec.Template.Spec.Containers[0].Args, "--shard=$(SHARD)", name)
			}
			for _, o := range objects {
				switch o.GetKind() {
				case "ClusterRole", "ClusterRoleBinding":
					assert.Regexp(t, "^tidb-groups-.*-c$", o.GetName())
				case "Role":
					leases, _, err := unstructured.NestedSlice(o.Object, "rules")
					require.NoError(t, err)
					assert.Regexp(t, `resourceNames:\[tidb-groups-[a-z]+-c\]`, fmt.Sprint(leases[1]), o.GetName())
				}
			}
		})
	}
}

func TestPoliciesKnowEachSetOfOperators(t *testing.T) {
	shared := render(t, "overlays/shards")
	sets := every[rbacv1.ClusterRoleBinding](t, shared, "ClusterRoleBinding")["tidb-groups-shards"]
	var subjects []string
	for _, s := range sets.Subjects {
		subjects = append(subjects, s.Kind+" "+s.Name)
	}
	assert.Equal(t, []string{"Group system:serviceaccounts:tidb-groups-a", "Group system:serviceaccounts:tidb-groups-b"}, subjects)
	assert.Equal(t, []string{"namespaces: list watch"}, rights(every[rbacv1.ClusterRole](t, shared, sets.RoleRef.Kind)[sets.RoleRef.Name].Rules))
	read := 0
	for name, b := range every[admissionv1.ValidatingAdmissionPolicyBinding](t, shared, "ValidatingAdmissionPolicyBinding") {
		if b.Spec.ParamRef != nil {
			read++
			assert.Equal(t, sets.Name, b.Spec.ParamRef.Name, name)
		}
	}
	assert.Equal(t, 3, read)
}
