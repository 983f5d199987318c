package planning

import (
	"github.com/tidb-groups/tidb-groups/shared/pd"
)

// Recheck is what a step rests on that cannot be undone.
type Recheck struct {
	// Instance that the step is about.
	Instance string
	// Still says why the step must not be done after all, by a new answer of PD; empty if
	// it may be done.
	Still func(now pd.View) string
}
