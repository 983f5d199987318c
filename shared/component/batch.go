package component

import (
	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/verdict"
)

// BatchRestarter is implemented by a Component whose members may be restarted at the same
// time, as a batch: the holder of the Lease and the other members that the Lease names.
// Everything is pure.
//
// Each member of a batch is prepared, stopped and recovered like a single one. If it is no
// longer proven that all of them may be stopped together, those that have been stopped
// come back first, and the holder goes on alone.
type BatchRestarter interface {
	// ChooseBatch returns which of others may be stopped at the same time as first; all of
	// them are to be restarted. If the group asks for batches and none is possible, alone
	// says why.
	ChooseBatch(first *v1alpha1.Instance, others []*v1alpha1.Instance) (with []*v1alpha1.Instance, alone verdict.Reason)
	// AllowsBatch says whether members may be stopped at the same time, as far as that is
	// known without their regions. Some of them may have been stopped already.
	AllowsBatch(all []*v1alpha1.Instance) verdict.Verdict
	// AllowsBatchNow says the same of what passes by itself, as AllowsNow does of one
	// member.
	AllowsBatchNow(all []*v1alpha1.Instance) verdict.Verdict
	// BatchQuestion is what PD has to be asked about the regions of the members.
	BatchQuestion(all []*v1alpha1.Instance) observation.RegionQuestion
	// AllowsByRegions says whether the members may be stopped at the same time, by what PD
	// answered.
	AllowsByRegions(a observation.RegionAnswer) verdict.Verdict
}
