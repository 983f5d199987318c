package controller

import (
	"testing"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/testkit/hostile"
)

// P10, P12: whatever stands in a TiProxyGroup.
func FuzzATiProxyGroup(f *testing.F) {
	hostile.Fuzz(f, "1", func(t *testing.T, attempt hostile.Attempt) {
		g := sample()
		if !hostile.CanMerge(&g.Spec, g.GetReplicas, attempt) {
			return
		}
		g.Spec.Config = attempt.Config
		hostile.Judge(t, v1alpha1.KindTiProxyGroup, func() any {
			for _, seen := range []observation.Snapshot{{PDGroup: pdGroup(), Image: ownImage, Now: clock()}, {Now: clock()}} {
				seen := snapshot{Snapshot: seen}
				p, err := makePlan(g, seen)
				if err != nil {
					t.Fatal(err) // it would not come to the status
				}
				g.Status, _ = reportStatus(g, seen, p, step.Done(), clock())
				reportMembers(g, seen, p, clock())
			}
			return g
		})
	})
}
