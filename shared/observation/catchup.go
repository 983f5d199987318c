package observation

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/pd"
)

const (
	// MinVoters is the number of voters from which on a region can do without one.
	MinVoters = 3
	// catchUp is for how long the regions of a store are looked at after it became ready: it may
	// need snapshots of what was written meanwhile.
	catchUp = 30 * time.Minute
)

// HasReturningStore reports whether a member of the cluster whose store is Up has not been ready
// for long: peers on it may lack what the others have.
func (s Snapshot) HasReturningStore() bool {
	return slices.ContainsFunc(s.WithSiblings(), func(i *v1alpha1.Instance) bool {
		pod := meta.FindStatusCondition(i.Status.Conditions, v1alpha1.ConditionPodReady)
		if i.Status.Member == nil || pod == nil {
			return false
		}
		store, listed := s.PD.Store(i.Status.Member.ID)
		return listed && store.State == pd.StateUp && store.Regions > 0 &&
			(pod.Status != metav1.ConditionTrue || s.Now.Sub(pod.LastTransitionTime.Time) < catchUp)
	})
}

// CatchesUp reports whether a region would lose its majority with one more store of a group,
// because a voter of it on a store that is Up lacks what the others have: not while the group is
// suspended, since none comes back then. For a moment all but a leader that has
// just been elected seem to: without a majority there would be no leader. If PD has not said which
// regions do, it may be so for a while after a store has returned.
func (s Snapshot) CatchesUp(g v1alpha1.Group) bool {
	switch {
	case g.GetComponentSpec().Suspended:
		return false
	case s.RegionsErr != nil:
		return s.HasReturningStore()
	}
	return slices.ContainsFunc(s.Regions, func(r pd.Region) bool {
		work, voters := CountSurvivors(r, s.PD, "")
		isBehind := func(p pd.Peer) bool { return p.Voter && isUp(s.PD, p.StoreID) && (p.Down || p.Pending) }
		return voters >= MinVoters && work == pd.Majority(voters) && slices.ContainsFunc(r.Peers, isBehind)
	})
}

// CountSurvivors counts the voters of a region, and those of them that work on other
// stores than one.
func CountSurvivors(r pd.Region, view pd.View, without string) (left, voters int) {
	for _, p := range r.Peers {
		if !p.Voter {
			continue
		}
		voters++
		if p.StoreID != without && !p.Down && !p.Pending && isUp(view, p.StoreID) {
			left++
		}
	}
	return left, voters
}

// isUp reports whether PD lists a store, and as Up.
func isUp(view pd.View, store string) bool {
	s, listed := view.Store(store)
	return listed && s.State == pd.StateUp
}
