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
	hostile.Add(f, "1")
	f.Fuzz(func(t *testing.T, spec, config string, call uint8, answer string) {
		attempt := hostile.Attempt{Spec: spec, Config: config, Call: call, Answer: answer}
		c := stored(t)
		s := made(c, step.Done())
		if len(answer) <= hostile.LongestMessage {
			for _, g := range s.groups {
				for i := range g.GetGroupStatus().Conditions {
					g.GetGroupStatus().Conditions[i].Message = answer
				}
			}
		}
		if !hostile.Into(&c.Spec, func() int32 { return int32(len(c.Spec.TiKV) + len(c.Spec.TiDB) + len(c.Spec.TiFlash)) }, attempt) { //nolint:gosec // a few
			return
		}
		c.Spec.PD.Config = config
		hostile.Judge(t, v1alpha1.KindTidbCluster, func() any {
			for _, seen := range []snapshot{s, {}} {
				p := plan(c, seen)
				c.Status, _ = report(c, seen, p, step.Done(), clock())
			}
			return c
		})
	})
}
