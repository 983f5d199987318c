package storestate

import (
	"slices"
	"time"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/gate"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/verdict"
)

// State is what decisions about the members of a group of stores rest on.
type State struct {
	// Group that the members belong to.
	Group v1alpha1.StoreGroup
	// Snapshot of the group.
	Snapshot observation.Snapshot
	// TrustPD says whether what PD answered is to be used.
	TrustPD verdict.Verdict
	// Stores of the Instances, none while TrustPD refuses.
	Stores []Match
	// HasLeaders says that the members lead regions, which are moved away before one
	// is stopped, for at most EvictTimeout.
	HasLeaders   bool
	EvictTimeout time.Duration
	// RestartTogether is the location label by which members are restarted at the
	// same time; empty for one after the other.
	RestartTogether string
	// Order in which the members would leave, by Instance.
	Order map[string]int
}

// StoreOf returns the store of an Instance.
func StoreOf(c State, i *v1alpha1.Instance) Match {
	at := slices.IndexFunc(c.Stores, func(m Match) bool { return m.Instance.Name == i.Name })
	if at < 0 {
		return Match{Instance: i, Recorded: RecordedID(i), Own: verdict.Allow()} // nothing is known against it
	}
	return c.Stores[at]
}

// OtherStores returns the stores of the member's kind in the whole cluster, of whatever
// group, without the member's own.
func OtherStores(c State, m Match) []pd.Store {
	var out []pd.Store
	for _, s := range c.Snapshot.PD.Stores {
		if s.HasLearnersOnly() == !c.HasLeaders && (m.Store == nil || s.ID != m.Store.ID) {
			out = append(out, s)
		}
	}
	return out
}

// PDKnown says whether PD can be relied upon now.
func PDKnown(c State) verdict.Verdict {
	if c.TrustPD.IsAllowed() && !c.Snapshot.PD.HasQuorum() {
		return verdict.Refusef("PDGroup %s has no quorum: kubectl -n %s describe pdgroup %s", c.Group.PDGroupName(), c.Group.GetNamespace(), c.Group.PDGroupName())
	}
	return c.TrustPD
}

// KnowsRegions reports whether PD knows by now which regions lie where: a new leader
// of PD counts none at first. It does once it counts those of the member itself.
func KnowsRegions(m Match) bool {
	return m.Store != nil && m.Store.State == pd.StateUp && m.Store.Regions > 0
}

// ReadySince is when an Instance's pod became Ready, zero if it is not.
func ReadySince(i *v1alpha1.Instance) time.Time {
	c := gate.FindCurrentCondition(i.Status.Conditions, i.Generation, v1alpha1.ConditionReady)
	if c == nil || c.Status != "True" {
		return time.Time{}
	}
	return c.LastTransitionTime.Time
}
