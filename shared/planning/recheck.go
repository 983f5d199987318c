package planning

import (
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/verdict"
)

// Recheck is what a step rests on that cannot be undone.
type Recheck struct {
	// Instance that the step is about.
	Instance string
	// Still says whether the step may be done, by a new answer of PD.
	Still func(now pd.View) verdict.Verdict
}
