package stateless_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/stateless"
	"github.com/tidb-groups/tidb-groups/shared/testkit/instancetest"
)

// A member that was released drains its connections for as long as its pod stops. Another one may
// have its place meanwhile, and its claims are judged when the pod has gone.
func TestAMemberThatHasLeftStaysSoUntilItsPodHasStopped(t *testing.T) {
	drained := []metav1.Condition{{Type: v1alpha1.ConditionDrained, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonMemberLeft}}
	for name, c := range map[string]struct {
		edit func(*v1alpha1.Instance)
		want metav1.ConditionStatus
	}{
		"its pod still stops":        {func(i *v1alpha1.Instance) { i.DeletionTimestamp, i.Finalizers = &metav1.Time{}, nil }, metav1.ConditionTrue},
		"its removal was taken back": {func(*v1alpha1.Instance) {}, metav1.ConditionFalse},
		"it was not released yet": {func(i *v1alpha1.Instance) {
			i.DeletionTimestamp, i.Finalizers = &metav1.Time{}, []string{v1alpha1.FinalizerMember}
		}, metav1.ConditionFalse},
	} {
		t.Run(name, func(t *testing.T) {
			i := instancetest.Instance(0, "a")
			i.Status.Conditions = drained
			c.edit(i)
			g := &v1alpha1.TiDBGroup{ObjectMeta: metav1.ObjectMeta{Name: "basic-tidb", Namespace: "ns"}}
			members := stateless.Report(g, []*v1alpha1.Instance{i}, map[string]bool{}, 4000, time.Unix(1800000000, 0))
			require.Len(t, members, 1)
			said := meta.FindStatusCondition(members[0].Conditions, v1alpha1.ConditionDrained)
			require.NotNil(t, said)
			assert.Equal(t, c.want, said.Status, said.Message)
		})
	}
}
