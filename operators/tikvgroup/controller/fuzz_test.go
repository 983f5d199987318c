package controller

import (
	"testing"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/testkit/hostile"
)

// P10, P12: whatever stands in a TiKVGroup and whatever its PD answers.
func FuzzATiKVGroup(f *testing.F) {
	hostile.Fuzz(f, "1", func(t *testing.T, attempt hostile.Attempt) {
		g := sample()
		s := world(t, g, 3)
		if !hostile.CanMerge(&g.Spec, g.GetReplicas, attempt) {
			return
		}
		g.Spec.Config = attempt.Config
		server := hostile.New(t, "1")
		hostile.Judge(t, v1alpha1.KindTiKVGroup, func() any {
			s.PD = server.View(t, attempt)
			for _, seen := range []observation.Snapshot{s, {PDGroup: s.PDGroup, PD: s.PD, Now: now()}} {
				p, err := makePlan(g, seen)
				if err != nil {
					t.Fatal(err) // it would not come to the status
				}
				g.Status, _, _ = reportStatus(g, seen, p, step.Done(), now())
				reportMembers(g, seen, p, now())
			}
			return g
		})
	})
}
