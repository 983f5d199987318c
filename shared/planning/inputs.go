package planning

import (
	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/revision"
)

// Inputs are what every step of a plan decides from.
type Inputs struct {
	// Group that is planned for.
	Group v1alpha1.Group
	// Snapshot of what there is.
	Snapshot observation.Snapshot
	// Rendering of the members.
	Rendering component.Rendering
	// Target is the revision that is wanted.
	Target revision.Target
	// StoredFiles decodes the stored revisions, once and when first needed.
	StoredFiles func() (StoredFiles, error)
}
