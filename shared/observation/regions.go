package observation

import (
	"github.com/tidb-groups/tidb-groups/shared/pd"
)

// RegionQuestion is whether a store has a region of a kind.
type RegionQuestion struct {
	// Stores whose regions are looked through, by ID.
	Stores []string
	// Sought tells the kind.
	Sought func(pd.Region) bool
}

// RegionAnswer is what PD answered.
type RegionAnswer struct {
	// Stores that were asked for.
	Stores []string
	// Found is the first region that was sought; nil if there is none.
	Found *pd.Region
	// Err is why PD did not answer.
	Err error
}
