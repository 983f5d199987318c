package execution

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/planning"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/testkit/instancetest"
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
