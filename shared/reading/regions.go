package reading

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/operator"
)

// regionsDeadline bounds the calls about regions.
const regionsDeadline = 3 * time.Second

// AskRegions asks PD which regions might lose their majority with one more peer, if a
// member of the group is being stopped or is to be, or a store has not been back for long: a
// drain may stop another one.
func AskRegions(ctx context.Context, env operator.Env, g v1alpha1.Group, s *observation.Snapshot) {
	due := s.HoldsLease() || observation.IsRestartDue(g, *s) && (s.Lease.IsFree() || s.HolderLost) || !g.GetComponentSpec().Suspended && s.HasReturningStore()
	if !due || s.PDPending || s.PD.Err != nil {
		return
	}
	s.RegionsKnown = true
	client, err := env.PD.Client(types.NamespacedName{Namespace: g.GetNamespace(), Name: g.PDGroupName()})
	if err != nil {
		s.RegionsErr = err
		return
	}
	ctx, cancel := context.WithTimeout(ctx, regionsDeadline)
	defer cancel()
	s.Regions, s.RegionsErr = client.UnhealthyRegions(ctx)
}

// questionDeadline bounds how long the regions of several stores are read: what was read
// first must still be true.
const questionDeadline = 10 * time.Second

// AskQuestion asks PD what a plan has to know before it can go on.
func AskQuestion(ctx context.Context, env operator.Env, g v1alpha1.Group, q observation.RegionQuestion) *observation.RegionAnswer {
	out := &observation.RegionAnswer{Stores: q.Stores}
	client, err := env.PD.Client(types.NamespacedName{Namespace: g.GetNamespace(), Name: g.PDGroupName()})
	if err != nil {
		out.Err = err
		return out
	}
	ctx, cancel := context.WithTimeout(ctx, questionDeadline)
	defer cancel()
	for _, id := range q.Stores {
		found, ok, err := client.FindRegion(ctx, id, q.Sought)
		switch {
		case err != nil:
			out.Err = err
			return out
		case ok:
			out.Found = &found
			return out
		}
	}
	return out
}
