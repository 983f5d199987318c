package stage

import (
	"slices"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/lease"
	"github.com/tidb-groups/tidb-groups/shared/testkit/machine"
)

// Holder returns who holds the cluster's disruption Lease, empty if none does.
func (s *Stage) Holder() string {
	var l coordinationv1.Lease
	if s.Client.Get(s.Context(), s.Key(lease.Name(PDGroupName)), &l) != nil {
		return ""
	}
	return ptr.Deref(l.Spec.HolderIdentity, "")
}

// AtRest waits until nothing is left of any disruption: the Lease is given back,
// no Instance carries a mark or is to leave, and no store is kept from leading.
func (s *Stage) AtRest() {
	s.Helper()
	require.Eventually(s, func() bool { return s.Holder() == "" }, machine.StretchWait(Timeout), Tick, "the Lease is given back")
	require.Eventually(s, func() bool {
		return !slices.ContainsFunc(s.Instances(), func(i v1alpha1.Instance) bool {
			return i.Annotations[v1alpha1.AnnotationDisruption] != "" || i.Spec.Retire
		})
	}, machine.StretchWait(Timeout), Tick, "no mark is left")
	v, err := s.PD.View(s.Context())
	require.NoError(s, err)
	assert.Empty(s, v.EvictLeader)
}
