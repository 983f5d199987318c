package apply_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/apply"
	"github.com/tidb-groups/tidb-groups/shared/testkit/controlplane"
)

// api is what TestMain hands to the tests.
var api client.Client

func TestMain(m *testing.M) {
	os.Exit(controlplane.Main(m, controlplane.Options{CRDPaths: []string{"../../deploy/crds"}}, func(cp *controlplane.ControlPlane) {
		scheme := runtime.NewScheme()
		err := clientgoscheme.AddToScheme(scheme)
		if err == nil {
			err = v1alpha1.AddToScheme(scheme)
		}
		if err == nil {
			api, err = client.New(cp.Config, client.Options{Scheme: scheme})
		}
		if err != nil {
			panic(err)
		}
	}))
}

func service(namespace string) *corev1.Service {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "basic-pd", Namespace: namespace, Labels: map[string]string{"team": "blue"}}}
	s.Spec.Ports = []corev1.ServicePort{{Name: "client", Port: 2379, TargetPort: intstr.FromString("client")}}
	s.Spec.Selector = map[string]string{"a": "b"}
	return s
}

func TestObject(t *testing.T) {
	namespace := controlplane.CreateNamespace(t, api)
	ctx := t.Context()
	key := client.ObjectKey{Namespace: namespace, Name: "basic-pd"}
	read := func() *corev1.Service {
		s := &corev1.Service{}
		require.NoError(t, api.Get(ctx, key, s))
		return s
	}
	do := func(desired *corev1.Service, live client.Object) apply.Result {
		result, err := apply.Writer{Client: api, Owner: "test"}.Object(ctx, desired, live)
		require.NoError(t, err)
		return result
	}
	require.Equal(t, apply.Created, do(service(namespace), nil))
	first := read()
	assert.Equal(t, apply.Created, do(service(namespace), nil), "creating twice is harmless")
	assert.Equal(t, first.ResourceVersion, read().ResourceVersion)
	assert.Equal(t, apply.Unchanged, do(service(namespace), first), "what is there already is not sent")

	// Fields of others are left alone, and what they changed of ours is not.
	foreign := read()
	foreign.Labels["theirs"], foreign.Labels["team"] = "x", "red"
	require.NoError(t, api.Update(ctx, foreign))
	assert.Equal(t, apply.Updated, do(service(namespace), read()))
	assert.Equal(t, map[string]string{"team": "blue", "theirs": "x"}, read().Labels)

	// A field that is not wanted any more is taken back.
	less := service(namespace)
	less.Labels = nil
	assert.Equal(t, apply.Updated, do(less, read()))
	assert.Equal(t, map[string]string{"theirs": "x"}, read().Labels)

	// An object that was recreated in the meantime is not written over.
	require.NoError(t, api.Delete(ctx, read()))
	require.Equal(t, apply.Created, do(service(namespace), nil))
	more := service(namespace)
	more.Labels["more"] = "x"
	_, err := apply.Writer{Client: api, Owner: "test"}.Object(ctx, more, first)
	assert.True(t, apierrors.IsConflict(err), "%v", err)

	more.Spec.Ports[0].Port = 0
	_, err = apply.Writer{Client: api, Owner: "test"}.Object(ctx, more, read())
	assert.True(t, apierrors.IsInvalid(err), "%v", err)
	assert.ErrorContains(t, err, "apply Service basic-pd")
}

// P7: what Kubernetes' own types stand in is written as it was said.
func TestAPatchIsWrittenWithItsNulls(t *testing.T) {
	namespace := controlplane.CreateNamespace(t, api)
	overlay := func(text string) *v1alpha1.PDGroup {
		g := &v1alpha1.PDGroup{ObjectMeta: metav1.ObjectMeta{Name: "basic-pd", Namespace: namespace}}
		g.Spec.Version, g.Spec.Overlay = "v8.5.7", &runtime.RawExtension{Raw: []byte(text)}
		g.Spec.Volumes = []v1alpha1.Volume{{Name: "pd", Storage: resource.MustParse("1Gi")}}
		return g
	}
	read := func() *v1alpha1.PDGroup {
		g := &v1alpha1.PDGroup{}
		require.NoError(t, api.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "basic-pd"}, g))
		return g
	}
	do := func(desired *v1alpha1.PDGroup, live client.Object) apply.Result {
		result, err := apply.Writer{Client: api, Owner: "test"}.Object(t.Context(), desired, live)
		require.NoError(t, err)
		return result
	}
	const first = `{"spec":{"nodeSelector":{"gpu":null},"priority":1}}`
	require.Equal(t, apply.Created, do(overlay(first), nil))
	assert.JSONEq(t, first, string(read().Spec.Overlay.Raw))
	assert.Equal(t, apply.Unchanged, do(overlay(first), read()))
	foreign := read()
	foreign.Spec.Overlay = &runtime.RawExtension{Raw: []byte(`{"spec":{"nodeSelector":{"gpu":null},"priority":1,"tolerations":[]}}`)}
	require.NoError(t, api.Update(t.Context(), foreign))
	assert.Equal(t, apply.Updated, do(overlay(first), read()), "it is the owner's as a whole")
	assert.JSONEq(t, first, string(read().Spec.Overlay.Raw))
	for _, next := range []string{`{"spec":{"nodeSelector":{}}}`, `{"spec":{"nodeSelector":null}}`, `{"spec":{}}`, `{}`} {
		assert.Equal(t, apply.Updated, do(overlay(next), read()), next)
		assert.JSONEq(t, next, string(read().Spec.Overlay.Raw))
	}
}

// Where a map stays of which nothing is left, there must be no null.
func TestAPodIsWrittenAsAWhole(t *testing.T) {
	namespace := controlplane.CreateNamespace(t, api)
	read := func() *v1alpha1.Instance {
		i := &v1alpha1.Instance{}
		require.NoError(t, api.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "basic-pd-0"}, i))
		return i
	}
	var live client.Object
	for _, pod := range []string{`{"spec":{"affinity":{"nodeAffinity":{"x":1}}}}`, `{"spec":{"affinity":{}}}`, `{"spec":{"affinity":{"podAffinity":{"x":[]}}}}`} {
		i := &v1alpha1.Instance{ObjectMeta: metav1.ObjectMeta{Name: "basic-pd-0", Namespace: namespace}}
		i.Spec.Group, i.Spec.Revision = v1alpha1.InstanceGroup{Kind: "PDGroup", Name: "basic-pd"}, "r"
		i.Spec.PodTemplate.Raw = []byte(pod)
		_, err := apply.Writer{Client: api, Owner: "test"}.Object(t.Context(), i, live)
		require.NoError(t, err)
		live = read()
		assert.JSONEq(t, pod, string(read().Spec.PodTemplate.Raw))
	}
}

// P3, P7: what the owner leaves out is off. By the rules of server-side apply it would stay as another writer,
// a user or a restore, has it: a pod that is stopped without the Lease, and for good.
func TestASwitchThatIsLeftOutIsSetBack(t *testing.T) {
	namespace := controlplane.CreateNamespace(t, api)
	named := metav1.ObjectMeta{Name: "basic-tikv-0", Namespace: namespace}
	instance := func() *v1alpha1.Instance {
		i := &v1alpha1.Instance{ObjectMeta: named}
		i.Spec.Group, i.Spec.Revision = v1alpha1.InstanceGroup{Kind: "TiKVGroup", Name: "basic-tikv"}, "r"
		i.Spec.PodTemplate.Raw = []byte(`{"spec":{"containers":[{"name":"tikv","resources":{}}],"securityContext":{}}}`)
		return i
	}
	group := func() *v1alpha1.TiKVGroup {
		g := &v1alpha1.TiKVGroup{ObjectMeta: named}
		g.Spec.Version, g.Spec.PDGroup.Name = "v8.5.7", "basic-pd"
		g.Spec.Volumes = []v1alpha1.Volume{{Name: "data", Storage: resource.MustParse("1Gi")}}
		return g
	}
	for edit, desired := range map[string]client.Object{
		`{"suspended":true}`:      instance(),
		`{"retire":true}`:         instance(),
		`{"stopPod":"uid"}`:       instance(),
		`{"inPlaceFrom":"other"}`: instance(),
		`{"podTemplate":{"spec":{"hostNetwork":true,"containers":[{"name":"tikv","resources":{}}],"securityContext":{}}}}`: instance(),
		`{"podTemplate":{"spec":{"containers":[{"name":"tikv","resources":{}},{"name":"debug"}],"securityContext":{}}}}`:   instance(),
		`{"suspended":true,"paused":true}`: group(),
	} {
		t.Run(edit, func(t *testing.T) {
			read := func() client.Object {
				live, ok := desired.DeepCopyObject().(client.Object)
				require.True(t, ok)
				require.NoError(t, api.Get(t.Context(), client.ObjectKeyFromObject(desired), live))
				return live
			}
			do := func(live client.Object) apply.Result {
				copied, ok := desired.DeepCopyObject().(client.Object)
				require.True(t, ok)
				result, err := apply.Writer{Client: api, Owner: "test"}.Object(t.Context(), copied, live)
				require.NoError(t, err)
				return result
			}
			spec := func() string {
				raw, err := json.Marshal(read())
				require.NoError(t, err)
				var said struct{ Spec json.RawMessage }
				require.NoError(t, json.Unmarshal(raw, &said))
				return string(said.Spec)
			}
			require.Equal(t, apply.Created, do(nil))
			before := spec()
			assert.Equal(t, apply.Unchanged, do(read()))
			require.NoError(t, api.Patch(t.Context(), read(), client.RawPatch(types.MergePatchType, []byte(`{"spec":`+edit+`}`))))
			require.NotEqual(t, before, spec())
			assert.Equal(t, apply.Updated, do(read()))
			assert.JSONEq(t, before, spec())
			assert.Equal(t, apply.Unchanged, do(read()))
			require.NoError(t, api.Delete(t.Context(), read()))
		})
	}
}

// P3: Kubernetes takes a budget with one of two fields only. With the other, which a user has put in its place to let a
// drain go on, no write of the owner would be taken any more.
func TestABudgetThatAUserHasChangedToTheOtherFieldIsSetBack(t *testing.T) {
	namespace := controlplane.CreateNamespace(t, api)
	budget := func() *policyv1.PodDisruptionBudget {
		b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "basic-tikv", Namespace: namespace}}
		b.Spec.MinAvailable, b.Spec.Selector = ptr.To(intstr.FromInt32(2)), &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
		return b
	}
	read := func() *policyv1.PodDisruptionBudget {
		b := &policyv1.PodDisruptionBudget{}
		require.NoError(t, api.Get(t.Context(), client.ObjectKeyFromObject(budget()), b))
		return b
	}
	do := func(live client.Object) apply.Result {
		result, err := apply.Writer{Client: api, Owner: "test"}.Object(t.Context(), budget(), live)
		require.NoError(t, err)
		return result
	}
	require.Equal(t, apply.Created, do(nil))
	assert.Equal(t, apply.Unchanged, do(read()))
	require.NoError(t, api.Patch(t.Context(), read(), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"minAvailable":null,"maxUnavailable":"100%"}}`))))
	require.Nil(t, read().Spec.MinAvailable)
	assert.Equal(t, apply.Updated, do(read()))
	assert.Equal(t, budget().Spec, read().Spec)
	assert.Equal(t, apply.Unchanged, do(read()))
}

// P7: a port is told by its number, and no two have a name: beside the one whose number a user has changed, Kubernetes takes
// the owner's no more.
func TestAPortWhoseNumberAUserHasChangedIsSetBack(t *testing.T) {
	namespace := controlplane.CreateNamespace(t, api)
	read := func() *corev1.Service {
		s := &corev1.Service{}
		require.NoError(t, api.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "basic-pd"}, s))
		return s
	}
	do := func(number int32, live client.Object) apply.Result {
		desired := service(namespace)
		desired.Spec.Type = corev1.ServiceTypeNodePort
		desired.Spec.Ports = append(desired.Spec.Ports, corev1.ServicePort{Name: "status", Port: number, TargetPort: intstr.FromString("status")})
		result, err := apply.Writer{Client: api, Owner: "test"}.Object(t.Context(), desired, live)
		require.NoError(t, err)
		return result
	}
	require.Equal(t, apply.Created, do(1000, nil))
	before := read()
	for _, number := range []int32{1000, 1001} { // the owner's own number may change, too
		edited := read()
		edited.Spec.Ports[1].Port = 3306
		require.NoError(t, api.Update(t.Context(), edited))
		assert.Equal(t, apply.Updated, do(number, read()))
		after := read()
		require.Len(t, after.Spec.Ports, 2)
		assert.Equal(t, number, after.Spec.Ports[1].Port)
		assert.Equal(t, before.Spec.Ports[0], after.Spec.Ports[0], "it keeps the port of the node as well")
		assert.Equal(t, apply.Unchanged, do(number, read()))
	}
}

func TestAFieldThatIsNotAppliedIsKeptAsOthersHaveIt(t *testing.T) {
	namespace := controlplane.CreateNamespace(t, api)
	ctx := t.Context()
	group := func(replicas *int32, version string) *v1alpha1.TiDBGroup {
		g := &v1alpha1.TiDBGroup{ObjectMeta: metav1.ObjectMeta{Name: "basic-tidb", Namespace: namespace}}
		g.Spec.Version, g.Spec.PDGroup.Name, g.Spec.Replicas = version, "basic-pd", replicas
		return g
	}
	read := func() *v1alpha1.TiDBGroup {
		g := &v1alpha1.TiDBGroup{}
		require.NoError(t, api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "basic-tidb"}, g))
		return g
	}
	do := func(desired *v1alpha1.TiDBGroup, live client.Object) apply.Result {
		result, err := apply.Writer{Client: api, Owner: "test"}.ObjectKeepingField(ctx, desired, live, "spec", "replicas")
		require.NoError(t, err)
		return result
	}
	scale := func(n int32) {
		g := read()
		g.Spec.Replicas = &n
		require.NoError(t, api.Update(ctx, g))
	}
	require.Equal(t, apply.Created, do(group(ptr.To(int32(3)), "v8.5.7"), nil))
	assert.Equal(t, apply.Updated, do(group(nil, "v8.5.7"), read()))
	assert.EqualValues(t, 3, read().GetReplicas(), "who says it no more takes nothing back")
	assert.Equal(t, apply.Unchanged, do(group(nil, "v8.5.7"), read()))

	scale(5)
	assert.Equal(t, apply.Unchanged, do(group(nil, "v8.5.7"), read()), "what others say is nothing to it")
	seen := read()
	scale(6)
	_, err := apply.Writer{Client: api, Owner: "test"}.ObjectKeepingField(ctx, group(nil, "v8.5.8"), seen, "spec", "replicas")
	assert.True(t, apierrors.IsConflict(err), "%v", err)
	assert.Equal(t, apply.Updated, do(group(nil, "v8.5.8"), read()))
	assert.EqualValues(t, 6, read().GetReplicas())
	assert.Equal(t, apply.Updated, do(group(ptr.To(int32(2)), "v8.5.8"), read()), "what is said again counts")
	assert.EqualValues(t, 2, read().GetReplicas())
}

// The garbage collector deletes what has an owner that is gone.
func TestAnOrphanIsTakenOverByAnOwnerThatStaysOnly(t *testing.T) {
	namespace := controlplane.CreateNamespace(t, api)
	ctx := t.Context()
	owner := func() *v1alpha1.TidbCluster {
		c := &v1alpha1.TidbCluster{ObjectMeta: metav1.ObjectMeta{Name: "basic", Namespace: namespace, Finalizers: []string{"example.com/stays"}}}
		c.Spec.Version = "v8.5.7"
		c.Spec.PD.Volumes = []v1alpha1.Volume{{Name: "data", Storage: resource.MustParse("1Gi")}}
		require.NoError(t, api.Create(ctx, c))
		return c
	}
	group := func(by *v1alpha1.TidbCluster) *v1alpha1.TiDBGroup {
		g := &v1alpha1.TiDBGroup{ObjectMeta: metav1.ObjectMeta{Name: "basic-tidb", Namespace: namespace}}
		g.Spec.Version, g.Spec.PDGroup.Name = "v8.5.7", "basic-pd"
		if by != nil {
			g.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(by, v1alpha1.GroupVersion().WithKind(v1alpha1.KindTidbCluster))}
		}
		return g
	}
	read := func() *v1alpha1.TiDBGroup {
		g := &v1alpha1.TiDBGroup{}
		require.NoError(t, api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "basic-tidb"}, g))
		return g
	}
	w := apply.Writer{Client: api, Owner: "test", Live: api}
	_, err := w.Object(ctx, group(nil), nil)
	require.NoError(t, err)
	orphan, c := read(), owner()
	require.NoError(t, api.Delete(ctx, c))
	_, err = w.Object(ctx, group(c), orphan)
	require.True(t, apierrors.IsConflict(err), "it is being deleted: %v", err)
	require.NoError(t, api.Patch(ctx, c, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
	_, err = w.Object(ctx, group(c), orphan)
	require.True(t, apierrors.IsConflict(err), "it is gone: %v", err)
	next := owner()
	_, err = w.Object(ctx, group(c), orphan)
	require.True(t, apierrors.IsConflict(err), "another one has its name: %v", err)
	assert.Empty(t, read().OwnerReferences)

	result, err := w.Object(ctx, group(next), orphan)
	require.NoError(t, err)
	assert.Equal(t, apply.Updated, result)
	assert.Equal(t, next.UID, read().OwnerReferences[0].UID)
	// A writer with an old view does not return the object to an owner that has released it.
	seen := read()
	seen.OwnerReferences = nil
	require.NoError(t, api.Update(ctx, seen.DeepCopy()))
	seen.OwnerReferences = group(next).OwnerReferences
	seen.Spec.Version = "v8.5.6"
	_, err = w.ObjectKeepingField(ctx, group(next), seen, "spec", "replicas")
	assert.True(t, apierrors.IsConflict(err), "%v", err)
	assert.Empty(t, read().OwnerReferences)
}

func TestStatusHasOneOwnerPerPart(t *testing.T) {
	namespace := controlplane.CreateNamespace(t, api)
	ctx := t.Context()
	i := &v1alpha1.Instance{ObjectMeta: metav1.ObjectMeta{Name: "basic-pd-0", Namespace: namespace}}
	i.Spec = v1alpha1.InstanceSpec{Group: v1alpha1.InstanceGroup{Kind: "PDGroup", Name: "basic-pd"}, Revision: "r", PodTemplate: runtime.RawExtension{Raw: []byte("{}")},
		VolumeClaimTemplates: []v1alpha1.VolumeClaimTemplate{{Name: "data", Storage: resource.MustParse("1Gi")}}}
	require.NoError(t, api.Create(ctx, i))
	condition := func(kind string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: "True", Reason: "X", Message: "x", LastTransitionTime: metav1.Now(), ObservedGeneration: 1}
	}
	for owner, status := range map[string]any{
		"instance": v1alpha1.InstanceStatus{Conditions: []metav1.Condition{condition("PodReady")}, PodUID: "u"},
		"pdgroup":  map[string]any{"conditions": []metav1.Condition{condition("Joined")}, "member": v1alpha1.MemberStatus{ID: "7"}},
	} {
		result, err := apply.Writer{Client: api, Owner: owner}.Status(ctx, i, status)
		require.NoError(t, err)
		assert.Equal(t, apply.Updated, result)
	}
	require.NoError(t, api.Get(ctx, client.ObjectKeyFromObject(i), i))
	assert.Len(t, i.Status.Conditions, 2)
	assert.Equal(t, "7", i.Status.Member.ID)
	_, err := apply.Writer{Client: api, Owner: "pdgroup"}.Status(ctx, i, map[string]any{})
	require.NoError(t, err)
	require.NoError(t, api.Get(ctx, client.ObjectKeyFromObject(i), i))
	assert.Nil(t, i.Status.Member, "what is left out is taken back")
	assert.Len(t, i.Status.Conditions, 1)
	assert.EqualValues(t, "u", i.Status.PodUID)

	require.NoError(t, api.Delete(ctx, i))
	_, err = apply.Writer{Client: api, Owner: "pdgroup"}.Status(ctx, i, map[string]any{"member": v1alpha1.MemberStatus{ID: "8"}})
	assert.Error(t, err, "a status brings nothing back to life")
}

func TestAnOutdatedStatusDoesNotOverwriteANewerOne(t *testing.T) {
	ctx := t.Context()
	g := &v1alpha1.PDGroup{ObjectMeta: metav1.ObjectMeta{Name: "basic-pd", Namespace: controlplane.CreateNamespace(t, api)}}
	g.Spec.Version = "v8.5.7"
	g.Spec.Volumes = []v1alpha1.Volume{{Name: "data", Storage: resource.MustParse("1Gi")}}
	require.NoError(t, api.Create(ctx, g))
	outdated := g.DeepCopy()
	_, err := apply.Writer{Client: api, Owner: "pdgroup"}.StatusIfLatest(ctx, g, v1alpha1.PDGroupStatus{ClusterID: "7"})
	require.NoError(t, err)
	_, err = apply.Writer{Client: api, Owner: "pdgroup"}.StatusIfLatest(ctx, outdated, v1alpha1.PDGroupStatus{})
	assert.True(t, apierrors.IsConflict(err), "%v", err)
	require.NoError(t, api.Get(ctx, client.ObjectKeyFromObject(g), g))
	assert.Equal(t, "7", g.Status.ClusterID)
	_, err = apply.Writer{Client: api, Owner: "pdgroup"}.StatusIfLatest(ctx, g, v1alpha1.PDGroupStatus{})
	require.NoError(t, err)
}

// P11: what was said of an object that is gone is not said of another one of its name.
func TestAStatusOfADeletedObjectIsNotThatOfTheNextOne(t *testing.T) {
	ctx := t.Context()
	namespace := controlplane.CreateNamespace(t, api)
	create := func() *v1alpha1.TiDBGroup {
		g := &v1alpha1.TiDBGroup{ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: namespace, Finalizers: []string{"example.com/held"}}}
		g.Spec.Version, g.Spec.PDGroup.Name = "v8.5.7", "pd"
		require.NoError(t, api.Create(ctx, g))
		return g
	}
	gone := create()
	require.NoError(t, api.Delete(ctx, gone))
	require.NoError(t, api.Get(ctx, client.ObjectKeyFromObject(gone), gone))
	_, err := apply.Writer{Client: api, Owner: "tidbgroup"}.Status(ctx, gone, v1alpha1.TiDBGroupStatus{Endpoint: "db:4000"})
	require.NoError(t, err, "while it is there it has a status")
	require.NoError(t, api.Get(ctx, client.ObjectKeyFromObject(gone), gone))
	released := gone.DeepCopy()
	released.Finalizers = nil
	require.NoError(t, api.Update(ctx, released))
	next := create()
	_, err = apply.Writer{Client: api, Owner: "tidbgroup"}.Status(ctx, gone, v1alpha1.TiDBGroupStatus{Endpoint: "gone:4000"})
	assert.True(t, apierrors.IsConflict(err), "%v", err)
	require.NoError(t, api.Get(ctx, client.ObjectKeyFromObject(next), next))
	assert.Empty(t, next.Status.Endpoint)
}
