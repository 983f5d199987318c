package execution

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/apply"
	"github.com/tidb-groups/tidb-groups/shared/conditions"
	"github.com/tidb-groups/tidb-groups/shared/groupstatus"
	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/status"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/testkit/instancetest"
)

// The status of what is being deleted is only written to the version that was seen. That
// it has changed since is no failure: it is looked at again when the cache shows it.
func TestAStatusThatMeetsANewerVersionIsWrittenAgain(t *testing.T) {
	scheme, err := operator.NewScheme()
	require.NoError(t, err)
	newer := apierrors.NewConflict(schema.GroupResource{}, "kv", nil)
	env := operator.Env{Status: status.Writer{Recorder: events.NewFakeRecorder(9), Apply: apply.Writer{Owner: "tikvgroup", Client: fake.NewClientBuilder().WithScheme(scheme).
		WithInterceptorFuncs(interceptor.Funcs{SubResourceApply: func(context.Context, client.Client, string, runtime.ApplyConfiguration, ...client.SubResourceApplyOption) error {
			return newer
		}}).Build()}}}
	member := groupstatus.Member{Instance: instancetest.MarkDeleted(instancetest.Instance(0, "a")), Status: &v1alpha1.MemberStatus{ID: "1"}}
	o, _ := writeMembers(t.Context(), env, []groupstatus.Member{member})
	assert.Equal(t, step.Conflict(v1alpha1.ReasonProgressing, "Instance kv-0 has changed meanwhile"), o)

	g, set := &v1alpha1.TiKVGroup{}, conditions.New(nil, 1, time.Unix(1800000000, 0))
	found := Findings[v1alpha1.TiKVGroupStatus]{Set: set, Members: []groupstatus.Member{member}, End: step.Done()}
	again := ctrl.Result{RequeueAfter: step.ConflictDelay}
	result, err := Conclude(t.Context(), env, g, &g.Status, found)
	require.NoError(t, err)
	assert.Equal(t, again, result)

	found.Members, found.Status.Replicas = nil, 3
	result, err = Conclude(t.Context(), env, g, &g.Status, found)
	require.NoError(t, err)
	assert.Equal(t, again, result)
	assert.Zero(t, g.Status.Replicas)
}
