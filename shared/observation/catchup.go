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
	// catchUp is for how long the regions of a store are looked at after it became ready: it may
	// need snapshots of what was written meanwhile.
	catchUp = 30 * time.Minute
	// minVoters is from how many voters on a region can do without one.
	minVoters = 3
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

// CatchesUp reports whether a region would lose its majority with one more store, because a voter
// of it on a store that is Up lacks what the others have. For a moment all but a leader that has
// just been elected seem to: without a majority there would be no leader. If PD has not said which
// regions do, it may be so for a while after a store has returned.
func (s Snapshot) CatchesUp() bool {
	if s.RegionsErr != nil {
		return s.HasReturningStore()
	}
	return slices.ContainsFunc(s.Regions, func(r pd.Region) bool {
		voters, left, behind := 0, 0, false
		for _, p := range r.Peers {
			store, listed := s.PD.Store(p.StoreID)
			switch up := listed && store.State == pd.StateUp; {
			case !p.Voter:
				continue
			case up && !p.Down && !p.Pending:
				left++
			default:
				behind = behind || up
			}
			voters++
		}
		return behind && voters >= minVoters && left == pd.Majority(voters)
	})
}
