package planning

import (
	"github.com/tidb-groups/tidb-groups/shared/pd"
)

// Recheck is what a destructive step rests on.
type Recheck struct {
	// Instance that the step is about.
	Instance string
	// Still says by a new View why the step must not be done after all; empty if
	// it may.
	Still func(now pd.View) string
}
