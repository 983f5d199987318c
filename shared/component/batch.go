package component

import (
	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/observation"
)

// Several members may be restarted at the same time: the holder of the Lease and
// its companions, whom the Lease names from when it is taken until it is given
// back. Who of them has been stopped, and who is back, is seen as it is of the
// holder. Where it is not proven any more that all of them may be stopped, those
// that have been come back first, and then the holder goes on alone.

// BatchRestarter is implemented by a Component whose members may be restarted at the
// same time. All of it is pure.
type BatchRestarter interface {
	// ChooseBatch returns which of others, all of which are to be restarted, may be
	// stopped at the same time as first, or why none is although the group asks for
	// that; neither if it does not ask.
	ChooseBatch(first *v1alpha1.Instance, others []*v1alpha1.Instance) (with []*v1alpha1.Instance, alone string)
	// WhyBatchUnsafe says why members must not be stopped at the same time, of which
	// some may have been already; empty if they may as far as is known without
	// their regions.
	WhyBatchUnsafe(all []*v1alpha1.Instance) string
	// WhyBatchNotYet says the same of what passes by itself, as Transient does of one.
	WhyBatchNotYet(all []*v1alpha1.Instance) string
	// BatchQuestion is what PD has to be asked about their regions.
	BatchQuestion(all []*v1alpha1.Instance) observation.RegionQuestion
	// WhyAnswerUnsafe says why, by what PD answered, they must not be stopped at the same
	// time; empty if they may.
	WhyAnswerUnsafe(a observation.RegionAnswer) string
}
