package controller

import (
	"testing"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/testkit/hostile"
)

// P10, P12: whatever stands in a PDGroup and whatever its PD answers, before it is
// bootstrapped and after.
func FuzzAPDGroup(f *testing.F) {
	hostile.Fuzz(f, "73", func(t *testing.T, attempt hostile.Attempt) {
		server := hostile.New(t, "73")
		for _, change := range []func(*v1alpha1.PDGroup){func(*v1alpha1.PDGroup) {}, bootstrapped} {
			s := started(t, stored(change), 3)
			g := stored(change)
			if !hostile.CanMerge(&g.Spec, g.GetReplicas, attempt) {
				return
			}
			g.Spec.Config = attempt.Config
			s.PDGroup = g
			hostile.Judge(t, v1alpha1.KindPDGroup, func() any {
				s.PD = server.View(t, attempt)
				for _, seen := range []observation.Snapshot{s, {PDGroup: g, Now: clock(), PD: s.PD}} {
					p, err := makePlan(g, seen)
					if err != nil {
						t.Fatal(err) // it would not come to the status
					}
					g.Status, _, _ = reportStatus(g, seen, p, step.Done(), clock())
					reportMembers(g, seen, p, clock())
				}
				return g
			})
		}
	})
}
