package controller

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/operator"
)

// An apply is refused if the group has just been written by its operator. The next one brings the
// same edit of the TidbCluster, whose status says by then that it was seen: no other writer has
// changed the group.
func TestOnlyAnEditOfTheGroupItselfIsSetBack(t *testing.T) {
	scheme, err := operator.NewScheme()
	require.NoError(t, err)
	var refuse bool
	live := &v1alpha1.TiKVGroup{} // as the API server has it
	applied := func(_ context.Context, _ client.WithWatch, o runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
		if refuse {
			return apierrors.NewConflict(schema.GroupResource{Resource: "tikvgroups"}, "basic-tikv", nil)
		}
		raw, err := json.Marshal(o)
		require.NoError(t, err)
		*live = v1alpha1.TiKVGroup{}
		return json.Unmarshal(raw, live)
	}
	api := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{Apply: applied}).Build()
	recorder := events.NewFakeRecorder(10)
	r := &Reconciler{operator.Env{Name: "tidbcluster", Client: api, Live: api, Scheme: scheme, Recorder: recorder}}
	c := sample(t, "ns")
	c.UID, c.Generation, c.Status.ObservedGeneration = "1", 1, 1
	// reconcile returns the Events of applying the group to what there is.
	reconcile := func(seen v1alpha1.Group) (out []string) {
		for _, g := range renderGroups(c) {
			if g.GroupKind() == v1alpha1.KindTiKVGroup {
				r.applyGroup(t.Context(), c, &groupChange{desired: g, live: seen})
			}
		}
		for len(recorder.Events) > 0 {
			out = append(out, <-recorder.Events)
		}
		return out
	}
	reconcile(nil)
	assert.Empty(t, reconcile(live.DeepCopy()), "it is as it should be")

	c.Spec.TiKV[0].Replicas = ptr.To[int32](5)
	c.Generation, refuse = 2, true
	assert.Empty(t, reconcile(live.DeepCopy()))
	c.Status.ObservedGeneration, refuse = 2, false
	assert.Equal(t, []string{"Normal Updated Updated TiKVGroup basic-tikv"}, reconcile(live.DeepCopy()))

	live.Spec.Replicas = ptr.To[int32](4)
	assert.Contains(t, reconcile(live.DeepCopy()), "Warning SetBack TiKVGroup basic-tikv is set back to what TidbCluster basic says; change it there, in spec.tikv[]: kubectl -n ns edit tidbcluster basic")
	assert.EqualValues(t, 5, *live.Spec.Replicas)
}
