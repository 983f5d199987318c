package controller

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// A quota or a policy refuses the group under the new name: the servers under the old one are all
// that there are.
func TestARenamedEntryLosesNoGroupBeforeTheNewOneIsMade(t *testing.T) {
	scheme, err := operator.NewScheme()
	require.NoError(t, err)
	c := stored(t)
	old := made(c, step.Done()).groups[groupKey{v1alpha1.KindTiDBGroup, "basic-tidb"}]
	old.SetUID("old")
	c.Spec.TiDB[0].Name = "oltp"
	for name, refused := range map[string]error{
		"refused": apierrors.NewForbidden(schema.GroupResource{Resource: "tidbgroups"}, "basic-tidb-oltp", errors.New("exceeded quota")),
		"made":    nil,
	} {
		t.Run(name, func(t *testing.T) {
			api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(c.DeepCopy(), old.DeepCopyObject().(client.Object)).WithInterceptorFuncs(interceptor.Funcs{
				Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
					return refused
				},
			}).Build()
			r := &Reconciler{operator.Env{Name: "tidbcluster", Client: api, Live: api, Scheme: scheme, Recorder: events.NewFakeRecorder(20)}}
			s := snapshot{groups: map[groupKey]v1alpha1.Group{keyOf(old): old}}
			p := makePlan(c, s)
			require.Len(t, p.Prune, 1)
			r.act(t.Context(), c, p)
			err := api.Get(t.Context(), client.ObjectKeyFromObject(old), &v1alpha1.TiDBGroup{})
			assert.Equal(t, refused == nil, apierrors.IsNotFound(err), "%v", err)
		})
	}
}

// The name that the entry gets is that of a group which others have made, or whose cluster is gone.
func TestARenamedEntryLosesNoGroupWhileTheNewNameIsTaken(t *testing.T) {
	c := stored(t)
	s := made(c, step.Done())
	c.Spec.TiDB[0].Name = "oltp"
	require.Len(t, makePlan(c, s).Prune, 1)
	for name, owner := range map[string]metav1.OwnerReference{
		"by another cluster":                    {Kind: "TidbCluster", Name: "other", UID: "other", Controller: ptr.To(true)},
		"by a deleted cluster of the same name": {Kind: "TidbCluster", Name: c.Name, UID: "before", Controller: ptr.To(true)},
	} {
		taken := &v1alpha1.TiDBGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "basic-tidb-oltp", OwnerReferences: []metav1.OwnerReference{owner}}}
		s.groups[keyOf(taken)] = taken
		p := makePlan(c, s)
		assert.Empty(t, p.Prune, name)
		assert.Contains(t, p.Outcome.Message, "basic-tidb-oltp", name)
	}
}
