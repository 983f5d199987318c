package planning

import (
	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/verdict"
)

// InstanceDiff is an Instance that is not being deleted, and how it differs from the spec.
type InstanceDiff struct {
	Live *v1alpha1.Instance
	// Kept is the Instance with the pod that it has, Wanted the one with the pod that it
	// is to have. They are the same object if no restart lies between.
	Kept, Wanted *v1alpha1.Instance
	// RestartReason says why a restart is wanted, if one is.
	RestartReason verdict.Reason
	// RestartOnly says that the restart changes nothing of the pod.
	RestartOnly bool
	// ApplyingConfig says that the configuration of another revision is being applied to
	// the running member, without a restart.
	ApplyingConfig bool
	// ConfigUpdate is what is sent to the running member of its configuration, nil for
	// nothing; ConfigOutcome what it lacks.
	ConfigUpdate  *component.ConfigUpdate
	ConfigOutcome step.Outcome
	// Notes say what was decided about it.
	Notes []string
}

// ReasonDeleted is why a member is disrupted whose Instance was deleted.
const ReasonDeleted = "it was deleted"
