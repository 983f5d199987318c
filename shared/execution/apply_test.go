package execution

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/budget"
	"github.com/tidb-groups/tidb-groups/shared/leaseclient"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/planning"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/workload"
)

// refusing counts what is written, and refuses it.
type refusing struct {
	client.Client

	n int
}

func (r *refusing) Apply(context.Context, runtime.ApplyConfiguration, ...client.ApplyOption) error {
	r.n++
	return apierrors.NewForbidden(schema.GroupResource{}, "", nil)
}

// P3, P7, S M11: another owner's object under a name of ours is not written to, and is
// named.
func TestObjectsOfAnotherOwnerAreNotTakenOver(t *testing.T) {
	g := &v1alpha1.TiKVGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "b", UID: "b-uid"}}
	g.Spec.PDGroup.Name = "a"
	pd := &v1alpha1.PDGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: "a-uid"}}
	i := &v1alpha1.Instance{ObjectMeta: workload.Meta(g, "b-0")}
	i.Spec.Group = v1alpha1.InstanceGroup{Kind: g.GroupKind(), Name: g.Name}
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "ns", Name: name} }
	budget := budget.SharedBudget(g, observation.Snapshot{PDGroup: pd})
	for name, c := range map[string]struct {
		plan   planning.Plan
		theirs client.Object
	}{
		"ConfigMap b-files":             {planning.Plan{Objects: planning.Objects{ConfigMap: &corev1.ConfigMap{ObjectMeta: workload.Meta(g, "b-files")}}}, &corev1.ConfigMap{ObjectMeta: named("b-files")}},
		"ControllerRevision b-1":        {planning.Plan{Objects: planning.Objects{Revision: &appsv1.ControllerRevision{ObjectMeta: workload.Meta(g, "b-1")}}}, &appsv1.ControllerRevision{ObjectMeta: named("b-1")}},
		"PodDisruptionBudget a-tikv":    {planning.Plan{Objects: planning.Objects{Budget: budget}}, &policyv1.PodDisruptionBudget{ObjectMeta: named("a-tikv")}},
		"Instance b-0":                  {planning.Plan{Instances: []planning.InstanceChange{{Desired: i}}}, &v1alpha1.Instance{ObjectMeta: named("b-0")}},
		"Service b-peer":                {planning.Plan{Objects: planning.Objects{Services: []*corev1.Service{{ObjectMeta: workload.Meta(g, "b-peer")}}}}, &corev1.Service{ObjectMeta: named("b-peer")}},
		"ConfigMap with our labels":     {planning.Plan{Objects: planning.Objects{ConfigMap: &corev1.ConfigMap{ObjectMeta: workload.Meta(g, "b-files")}}}, &corev1.ConfigMap{ObjectMeta: workload.Meta(g, "b-files")}},
		"PodDisruptionBudget with ours": {planning.Plan{Objects: planning.Objects{Budget: budget}}, &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a-tikv", OwnerReferences: budget.OwnerReferences}}},
	} {
		t.Run(name, func(t *testing.T) {
			scheme, err := operator.NewScheme()
			require.NoError(t, err)
			live := fake.NewClientBuilder().WithScheme(scheme).WithObjects(c.theirs).Build()
			writes := &refusing{Client: live}
			env := operator.Env{Live: live, Client: writes, Name: "tikvgroup"}
			o := Act(t.Context(), env, g, observation.Snapshot{}, c.plan)
			if strings.Contains(name, " with ") {
				assert.Equal(t, step.KindFail, o.Kind, "it is written, which this client refuses")
				return
			}
			assert.Equal(t, step.KindStall, o.Kind, o.Message)
			assert.Equal(t, v1alpha1.ReasonNameConflict, o.Reason)
			assert.Contains(t, o.Message, name+" exists and belongs to another owner")
			kind, object, _ := strings.Cut(name, " ")
			assert.Contains(t, o.Message, "kubectl -n ns delete "+strings.ToLower(kind)+" "+object)
			assert.NotZero(t, o.After, "no watch tells when it goes")
			assert.Zero(t, writes.n)
		})
	}
	t.Run("a Lease", func(t *testing.T) {
		scheme, err := operator.NewScheme()
		require.NoError(t, err)
		live := fake.NewClientBuilder().WithScheme(scheme).WithObjects(&coordinationv1.Lease{ObjectMeta: named("a-disruption")}).Build()
		pd := &v1alpha1.PDGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: "pd"}}
		o := leaseTaken(t.Context(), operator.Env{Live: live}, g, pd)
		assert.Equal(t, v1alpha1.ReasonNameConflict, o.Reason, o.Message)
		assert.Contains(t, o.Message, "Lease a-disruption exists")
		own := fake.NewClientBuilder().WithScheme(scheme).WithObjects(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "a-disruption", Labels: map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy},
		}}).Build()
		assert.Equal(t, v1alpha1.ReasonWaitingForLease, leaseTaken(t.Context(), operator.Env{Live: own}, g, pd).Reason, "one that the cache does not show yet")

		// A user who deletes it, as told, would let a second member be stopped.
		held := &coordinationv1.Lease{ObjectMeta: named("a-disruption")}
		held.Labels, held.OwnerReferences = nil, []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion().String(), Kind: v1alpha1.KindPDGroup, Name: "a", UID: "pd"}}
		held.Spec.HolderIdentity = ptr.To("TiKVGroup/kv-0")
		bare := fake.NewClientBuilder().WithScheme(scheme).WithObjects(held).Build()
		o = leaseTaken(t.Context(), operator.Env{Live: bare, Client: bare}, g, pd)
		assert.Equal(t, v1alpha1.ReasonWaitingForLease, o.Reason, o.Message)
		require.NoError(t, bare.Get(t.Context(), client.ObjectKeyFromObject(held), held))
		assert.Equal(t, v1alpha1.ManagedBy, held.Labels[v1alpha1.LabelManagedBy], "it gets the label back that it is found by")
		assert.Equal(t, "TiKVGroup/kv-0", *held.Spec.HolderIdentity)
	})
}

// P3, P9: a quota of load balancers or a policy may refuse the change of a Service for days. Members rendered with the
// Service that is there are restarted, replaced and removed all the same, or the whole cluster waits for the Lease.
func TestAChangedServiceThatIsRefusedKeepsNoMemberWaiting(t *testing.T) {
	g := &v1alpha1.TiDBGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", UID: "c-uid"}}
	g.Spec.PDGroup.Name = "a"
	is, balanced := &corev1.Service{ObjectMeta: workload.Meta(g, "c")}, &corev1.Service{ObjectMeta: workload.Meta(g, "c")}
	is.UID, balanced.Spec.Type = "s", corev1.ServiceTypeLoadBalancer
	held := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a-disruption"}}
	held.Spec.HolderIdentity = ptr.To("TiDBGroup/c-0")
	for name, c := range map[string]struct {
		services map[string]*corev1.Service
		revision *appsv1.ControllerRevision
		released bool
	}{
		"it is there as before":             {map[string]*corev1.Service{"c": is}, nil, true},
		"there is none":                     {nil, nil, false},
		"the members are to be new as well": {map[string]*corev1.Service{"c": is}, &appsv1.ControllerRevision{ObjectMeta: workload.Meta(g, "c-1")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			scheme, err := operator.NewScheme()
			require.NoError(t, err)
			live := fake.NewClientBuilder().WithScheme(scheme).WithObjects(held.DeepCopy()).Build()
			s := observation.Snapshot{Services: c.services}
			s.Lease, err = leaseclient.Read(t.Context(), live, "ns", "a")
			require.NoError(t, err)
			env := operator.Env{Live: live, Client: &refusing{Client: live}, Name: "tidbgroup", Recorder: events.NewFakeRecorder(9)}
			o := Act(t.Context(), env, g, s, planning.Plan{Objects: planning.Objects{Services: []*corev1.Service{balanced}, Revision: c.revision}, Disruptions: planning.Disruptions{Lease: planning.LeaseChange{Release: true}}})
			assert.Equal(t, c.released, o.Kind == step.KindWait && o.After > 0, o.Kind)
			assert.Contains(t, o.Message, "apply Service c: ")
			now, err := leaseclient.Read(t.Context(), live, "ns", "a")
			require.NoError(t, err)
			assert.Equal(t, c.released, now.IsFree())
		})
	}
}
