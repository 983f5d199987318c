package rollout

import (
	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/observation"
)

// Counts of a group's Instances.
type Counts struct {
	// Exist, Ready and Updated count Instances; Updated ones are at the wanted
	// revision.
	Exist, Ready, Updated int32
}

// Count counts the Instances of a snapshot.
func Count(s observation.Snapshot, revision string) Counts {
	var c Counts
	for _, i := range s.Instances {
		if i.DeletionTimestamp != nil {
			continue
		}
		c.Exist++
		if member.WasReady(i) {
			c.Ready++
		}
		if i.Spec.Revision == revision && revision != "" {
			c.Updated++
		}
	}
	return c
}

// IsCanaryLimited reports whether spec.disruption.updateAtMost counts for a revision: what all
// had before is what a canary is taken back to.
func IsCanaryLimited(g v1alpha1.Group, revision string) bool {
	wishes := g.GetComponentSpec().Disruption
	return wishes != nil && wishes.UpdateAtMost != nil && revision != g.GetGroupStatus().CurrentRevision
}

// CountUpdated counts the members at a revision that stay: those of a surge go again.
func CountUpdated(s observation.Snapshot, revision string) int32 {
	n := Count(s, revision).Updated
	for _, i := range s.Instances {
		if i.DeletionTimestamp == nil && member.IsSurge(i) && i.Spec.Revision == revision {
			n--
		}
	}
	return n
}
