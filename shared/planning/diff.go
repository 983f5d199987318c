package planning

import (
	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// InstanceDiff is a living Instance and the two things that may become of it.
type InstanceDiff struct {
	Live *v1alpha1.Instance
	// Kept is the Instance with the pod that it has, wanted the one with the pod
	// that it is to have. They are the same object if no restart lies between.
	Kept, Wanted *v1alpha1.Instance
	// RestartReason says why a restart is wanted; empty if none is.
	RestartReason string
	// RestartOnly says that the restart changes nothing of the pod.
	RestartOnly bool
	// ApplyingConfig says that the running member is being given another revision's
	// configuration, without a restart.
	ApplyingConfig bool
}

// ReasonDeleted is why a member is disrupted whose Instance somebody deletes.
const ReasonDeleted = "it was deleted"
