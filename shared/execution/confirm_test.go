package execution

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/planning"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/testkit/instancetest"
	"github.com/tidb-groups/tidb-groups/shared/workload"
)

// GRP-06: of an edit of all groups the last kind's may be seen last.
func TestAGroupChecksTheOrderOfSuspensionBeforeItStops(t *testing.T) {
	pd := &v1alpha1.PDGroup{ObjectMeta: metav1.ObjectMeta{Name: "pd", Namespace: "ns"}}
	pd.Spec.Suspended = true
	runs := instancetest.Instance(1, "uid")
	stops := runs.DeepCopy()
	stops.Spec.Suspended = true
	plan := planning.Plan{Instances: []planning.InstanceChange{{Live: runs, Desired: stops}}}
	for name, c := range map[string]struct {
		suspended bool
		plan      planning.Plan
		end       step.Kind
	}{
		"another one is to stop first":                    {true, plan, step.KindAfter},
		"the others are to run":                           {false, plan, step.KindDone},
		"no member is to be suspended that is not so yet": {true, planning.Plan{Instances: []planning.InstanceChange{{Live: stops, Desired: stops}}}, step.KindDone},
	} {
		t.Run(name, func(t *testing.T) {
			db := &v1alpha1.TiDBGroup{ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: "ns"}}
			db.Spec.PDGroup.Name, db.Spec.Suspended = "pd", c.suspended
			scheme, err := operator.NewScheme()
			require.NoError(t, err)
			env := operator.Env{Live: fake.NewClientBuilder().WithScheme(scheme).WithObjects(pd, db).Build()}
			assert.Equal(t, c.end, confirmSuspendOrder(t.Context(), env, pd, c.plan).Kind)
		})
	}
}

// An Instance that has lost a label is not seen, and would be made again without end.
func TestAnInstanceThatLostItsLabelsGetsThemBack(t *testing.T) {
	g := &v1alpha1.TiKVGroup{ObjectMeta: metav1.ObjectMeta{Name: "kv", Namespace: "ns", UID: "group"}}
	g.Spec.PDGroup.Name = "pd"
	there := &v1alpha1.Instance{ObjectMeta: metav1.ObjectMeta{Name: "kv-0", Namespace: "ns", Labels: map[string]string{"team": "blue"}, OwnerReferences: []metav1.OwnerReference{workload.Owner(g)}}}
	there.Spec.Group = v1alpha1.InstanceGroup{Kind: g.GroupKind(), Name: g.Name}
	scheme, err := operator.NewScheme()
	require.NoError(t, err)
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(there).Build()
	env := operator.Env{Name: "tikvgroup", Live: api, Client: api}
	desired := &v1alpha1.Instance{ObjectMeta: workload.Meta(g, there.Name)}
	o := confirmInstance(t.Context(), env, g, observation.Snapshot{}, planning.InstanceChange{Desired: desired})
	assert.Equal(t, step.KindAfter, o.Kind, o.Message)
	require.NoError(t, api.Get(t.Context(), client.ObjectKeyFromObject(there), there))
	want := workload.Labels(g)
	want["team"] = "blue"
	assert.Equal(t, want, there.Labels)

	there.Labels, there.OwnerReferences = nil, nil
	require.NoError(t, api.Update(t.Context(), there))
	o = confirmInstance(t.Context(), env, g, observation.Snapshot{}, planning.InstanceChange{Desired: desired})
	assert.Equal(t, v1alpha1.ReasonNameConflict, o.Reason, "one that a user has made is not touched")
}
