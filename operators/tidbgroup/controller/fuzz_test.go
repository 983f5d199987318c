package controller

import (
	"testing"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/testkit/hostile"
)

// P10, P12: whatever stands in a TiDBGroup and whatever its PD answers. SQL to begin
// with is the text of the answer, too.
func FuzzATiDBGroup(f *testing.F) {
	hostile.Fuzz(f, "1", func(t *testing.T, attempt hostile.Attempt) {
		g := stored()
		if !hostile.CanMerge(&g.Spec, g.GetReplicas, attempt) {
			return
		}
		g.Spec.Config = attempt.Config
		running, fresh := started(t, stored()), open()
		fresh.SQL = attempt.Answer
		server := hostile.New(t, "1")
		hostile.Judge(t, v1alpha1.KindTiDBGroup, func() any {
			running.PD = server.View(t, attempt)
			for _, seen := range []snapshot{running, fresh} {
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
