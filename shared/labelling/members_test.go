package labelling_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/labelling"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

func TestLabelsAreRememberedOnlyIfTheMemberTookThem(t *testing.T) {
	refuse := errors.New("refused")
	members := labelling.New(func(ctx context.Context, host string, _ map[string]string) error {
		_, bounded := ctx.Deadline()
		assert.True(t, bounded)
		if host == "bad" {
			return refuse
		}
		return nil
	})
	group, other := types.NamespacedName{Namespace: "ns", Name: "basic"}, types.NamespacedName{Namespace: "ns", Name: "other"}
	instances := []*v1alpha1.Instance{{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}}}
	require.ErrorIs(t, members.Give(t.Context(), labelling.Labelling{Group: group, Instance: "a", Host: "bad"}), refuse)
	assert.Empty(t, members.Labels(group, instances))
	good := labelling.Labelling{Group: group, Instance: "a", Host: "good"}
	for _, l := range []labelling.Labelling{good, {Group: group, Instance: "gone", Host: "good"}, {Group: other, Instance: "b", Host: "good"}} {
		require.NoError(t, members.Give(t.Context(), l))
	}
	assert.Equal(t, map[string]labelling.Labelling{"a": good}, members.Labels(group, instances))

	members.Forget(group)
	assert.Empty(t, members.Labels(group, instances))
}

// A member that cannot be reached keeps no other from its labels, and the group says so.
func TestLabelsOfOtherMembersAreGivenBesideOneThatFails(t *testing.T) {
	members := labelling.New(func(_ context.Context, host string, _ map[string]string) error {
		if host == "bad" {
			return errors.New("refused")
		}
		return nil
	})
	group := types.NamespacedName{Namespace: "ns", Name: "basic"}
	end := step.RunInParallel(members.ListWork(t.Context(), []labelling.Labelling{{Group: group, Instance: "a", Host: "bad"}, {Group: group, Instance: "b", Host: "good"}})...)
	assert.Equal(t, step.KindFail, end.Kind)
	assert.Equal(t, v1alpha1.ReasonRequestFailed, end.Reason)
	require.EqualError(t, end.Err, "label the member of Instance ns/a: refused")
	given := members.Labels(group, []*v1alpha1.Instance{{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, {ObjectMeta: metav1.ObjectMeta{Name: "b"}}})
	assert.Len(t, given, 1)
	assert.Contains(t, given, "b")
}
