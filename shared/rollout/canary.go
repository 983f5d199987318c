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

// Count counts the Instances of a Snapshot.
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

// IsCanaryLimited reports whether spec.disruption.updateAtMost applies to a revision. It
// does not apply to the one that all members had before: a canary is taken back to that.
func IsCanaryLimited(g v1alpha1.Group, revision string) bool {
	wishes := g.GetComponentSpec().Disruption
	return wishes != nil && wishes.UpdateAtMost != nil && revision != g.GetGroupStatus().CurrentRevision
}

// CountUpdated counts the members at a revision that stay. Those of a surge leave again.
func CountUpdated(s observation.Snapshot, revision string) int32 {
	n := Count(s, revision).Updated
	for _, i := range s.Instances {
		if i.DeletionTimestamp == nil && member.IsSurge(i) && i.Spec.Revision == revision {
			n--
		}
	}
	return n
}
