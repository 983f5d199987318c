package controller

import (
	"testing"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/testkit/hostile"
)

// P10, P12: whatever stands in a TidbCluster. The message of a group that its operator
// wrote, which may repeat what a PD has said, is the text of the answer.
func FuzzATidbCluster(f *testing.F) {
	hostile.Fuzz(f, "1", func(t *testing.T, attempt hostile.Attempt) {
		c := stored(t)
		s := made(c, step.Done())
		if len(attempt.Answer) <= hostile.LongestMessage {
			for _, g := range s.groups {
				for i := range g.GetGroupStatus().Conditions {
					g.GetGroupStatus().Conditions[i].Message = attempt.Answer
				}
			}
		}
		if !hostile.CanMerge(&c.Spec, func() int32 { return int32(len(c.Spec.TiKV) + len(c.Spec.TiDB) + len(c.Spec.TiFlash)) }, attempt) { //nolint:gosec // a few
			return
		}
		c.Spec.PD.Config = attempt.Config
		hostile.Judge(t, v1alpha1.KindTidbCluster, func() any {
			for _, seen := range []snapshot{s, {}} {
				p := makePlan(c, seen)
				c.Status, _ = reportStatus(c, seen, p, step.Done(), clock())
			}
			return c
		})
	})
}
