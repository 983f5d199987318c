package controller

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/tidbgroup/statusport"
	"github.com/tidb-groups/tidb-groups/shared/group/grouptest"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/planning"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// enough reconciles lead from any state to where nothing is left to do.
const enough = 40

// paths are the states that are followed to their end.
func paths() []space {
	fresh, free := []string{"new"}, []string{"free"}
	return []space{
		{"three servers", 3, slotsOf("serves", "broken", "deleted"), []int32{2, 3}, []int32{1}, fresh, subsets(), free},
		{"two servers and all wishes", 2, slotsOf("serves", "broken", "retired", "deleted"), []int32{0, 1, 2}, []int32{0, 1}, fresh, append(subsets("held", "no PD"), []string{"paused"}, []string{"suspended"}, []string{"not its turn"}, []string{"canary"}), free},
		{"three servers and an upgrade", 3, slotsOf("serves", "broken"), []int32{2}, []int32{0, 1}, fresh, [][]string{{"known"}, {"known", "told"}}, free},
	}
}

// TestEveryStateOfServersConverges carries the plan of every state out, again and
// again, in a world that does its part, until the servers are what is asked for
// or it is said what they wait for. Never do too few serve on the way.
func TestEveryStateOfServersConverges(t *testing.T) {
	b := newStateSpace(t)
	total := grouptest.FollowStates(t, v1alpha1.KindTiDBGroup, paths(), func(st state) (string, int, []string) {
		end, steps, wrong := b.follow(st)
		if !st.mayEnd(end) {
			wrong = append(wrong, "it may not end so")
		}
		return end, steps, wrong
	})
	assert.Greater(t, total, 2_000)
}

// mayEnd says whether a state may come to rest so: as it was asked for, or held
// back by what its own words say.
func (s state) mayEnd(end string) bool {
	holds := map[string]string{
		v1alpha1.ReasonPaused: "paused", v1alpha1.ReasonUpdateHeld: "held", v1alpha1.ReasonWaitingForGroups: "not its turn",
		v1alpha1.ReasonWaitingForPDGroup: "no PD", v1alpha1.ReasonUnsafe: "no PD",
	}
	word, known := holds[end]
	return end == grouptest.Arrived || known && s.has(word) || end == v1alpha1.ReasonUpdateHeld && s.has("canary") || s.has("paused")
}

// follow plays a state to its end, and says how that was, after how many
// reconciles, and which servers were missed on the way.
func (b *stateSpace) follow(st state) (end string, steps int, missed []string) {
	g, seen := b.snapshot(st)
	stage := grouptest.New(g)
	stage.Now = clock()
	stage.Others = []v1alpha1.Group{seen.TiKVGroups[0]}
	stage.ExecutePlan(observation.Snapshot{}, planning.Plan{Objects: planning.Objects{Revision: &b.stored[0]}})
	stage.ExecutePlan(observation.Snapshot{}, planning.Plan{Objects: planning.Objects{Revision: &b.stored[1]}})
	for _, i := range seen.Instances {
		stage.AddInstance(i, member.WasReady(i))
	}
	stage.OnStop = func(pod grouptest.Pod, others int) {
		at := slices.Index(stage.Names(), pod.Name)
		i := stage.Instances()[at]
		needed := int(st.replicas)
		if st.surge == 0 {
			needed--
		}
		if others < needed && i.DeletionTimestamp == nil && !st.has("suspended") {
			missed = append(missed, fmt.Sprintf("%s is stopped while %d others serve", pod.Name, others))
		}
	}
	last, answer := "", statusport.Answer{}
	for steps = range enough {
		now := snapshot{Snapshot: stage.Snapshot(), Answer: answer}
		now.PDGroup, now.TiKVGroups = seen.PDGroup, seen.TiKVGroups
		p, err := b.plan(g, now)
		if err != nil {
			return err.Error(), steps, missed
		}
		stage.ExecutePlan(now.Snapshot, p.Plan)
		stage.Report(now.Snapshot, p.Plan)
		if g.Status.Upgrade = p.Upgrade; p.Order != nil {
			answer = statusport.Answer{Order: *p.Order, Done: true, At: stage.Now}
		}
		stage.Now = stage.Now.Add(10 * time.Second)
		stage.Advance()
		picture := picture(stage) + fmt.Sprint(g.Status.Upgrade, answer.Verb)
		if picture == last {
			j := judge(st, now, p)
			switch {
			case j.hasArrived() && p.Outcome.Kind == step.KindDone && g.Status.Upgrade != nil && len(stage.Names()) > 0:
				return "an upgrade is left behind", steps, missed
			case j.hasArrived() && p.Outcome.Kind == step.KindDone:
				return grouptest.Arrived, steps, missed
			case p.Outcome.Kind == step.KindDone:
				return "done, which it is not", steps, missed
			}
			return p.Outcome.Reason, steps, missed
		}
		last = picture
	}
	return "it goes round in circles", enough, missed
}

// picture is all that moves on a stage, in a line.
func picture(s *grouptest.Simulation) string {
	text := fmt.Sprint(s.Lease.Holder)
	for _, i := range s.Instances() {
		text += fmt.Sprintf(" %s/%s/%d", i.Name, i.ResourceVersion, i.Generation)
	}
	return text
}
