package controller

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/lease"
	"github.com/tidb-groups/tidb-groups/shared/member"
)

// KV-05: an empty store leaves within moments, and may have left, with the Lease still held, when
// its removal is taken back. It is replaced, and its plan can be carried out.
func TestKV05AStoreThatLeftBeforeItsRemovalWasTakenBackIsReplaced(t *testing.T) {
	g := sample()
	s := world(t, g, 4)
	g.Spec.Replicas = ptr.To(int32(4))
	i := s.Instances[3]
	i.UID, i.Spec.Retire = "uid", true
	metav1.SetMetaDataAnnotation(&i.ObjectMeta, v1alpha1.AnnotationDisruption, string(member.Remove))
	s.Lease = lease.NewState(lease.NewHolder(i), now(), 0)
	s.PD.Bootstrapped, s.PD.Stores = true, s.PD.Stores[:3]
	p, err := makePlan(g, s)
	require.NoError(t, err)
	assert.True(t, p.Lease.Release)
	require.Len(t, p.Deletes, 1)
	assert.Equal(t, i.Name, p.Deletes[0].Name)
	for _, c := range p.Rechecks {
		may := c.Still(s.PD)
		assert.True(t, may.IsAllowed(), may.Reason())
	}
}
