package controller

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/tiflashgroup/statusport"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/group/grouptest"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/planning"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// enough reconciles lead from any state to where nothing is left to do.
const enough = 60

// paths are the states that are followed to their end.
func paths() []space {
	return []space{
		{"two stores", 2, slotsOf(allLives()...), []int32{1, 2}, []int{1}, [][]string{nil}, []string{"free"}},
		{"three stores", 3, slotsOf("serves", "offline"), []int32{1, 2}, []int{0, 2}, [][]string{nil}, []string{"free"}},
		{"two stores and all wishes", 2, slotsOf("serves", "broken", "drains", "deleted"), []int32{1, 2}, []int{1},
			each("paused", "held", "suspended", "rules off", "not its turn"), []string{"free"}},
		{"three stores of which some die", 3, newOnes("serves", "broken", "deleted", "buried"), []int32{1, 2}, []int{0, 2}, failovers(), []string{"free"}},
	}
}

// newOnes are slots of stores that all have the new version.
func newOnes(words ...string) []storeCase {
	out := []storeCase{{}}
	for _, is := range words {
		out = append(out, storeCase{"new", is})
	}
	return out
}

// TestEveryStateOfStoresConverges carries the plan of every state out, again and
// again, in a world that does its part, until the stores are what is asked for or
// it is said what they wait for. No table loses its last replica on the way. A
// store that is dead stays so while something is done about it, and comes back then.
func TestEveryStateOfStoresConverges(t *testing.T) {
	b := newStateSpace(t)
	total := grouptest.FollowStates(t, v1alpha1.KindTiFlashGroup, paths(), func(st state) (string, int, []string) {
		end, steps, wrong := b.follow(st)
		if !st.mayEnd(end) {
			wrong = append(wrong, "it may not end so")
		}
		return end, steps, wrong
	})
	assert.Greater(t, total, 1_500)
}

// mayEnd says whether a state may come to rest so: as it was asked for, held back
// by what its own words say, or by a table that wants more than there is to be.
func (s state) mayEnd(end string) bool {
	holds := map[string]string{v1alpha1.ReasonUpdateHeld: "held", v1alpha1.ReasonWaitingForGroups: "not its turn"}
	word, known := holds[end]
	refused := (end == v1alpha1.ReasonScaleInRefused || end == v1alpha1.ReasonDraining || end == v1alpha1.ReasonUnsafe) && s.table > int(s.replicas)
	// It leaves when its group is resumed.
	leaves := end == v1alpha1.ReasonDraining && s.has("suspended") && slices.ContainsFunc(s.slots, func(m storeCase) bool { return m.is == "deleted" })
	return end == grouptest.Arrived || known && s.has(word) || refused || s.has("paused") || leaves
}

// theatre is a stage and a small PD beside it.
type theatre struct {
	*grouptest.Simulation
	view  pd.View
	table int
	// data is the store whose data lies in a slot.
	data map[string]string
	// dead are the Instances whose pod does not come back for now.
	dead map[types.UID]bool
	// rounds are how often a process was asked: it says Idle at first.
	rounds map[types.UID]int
	next   int
}

// follow plays a state to its end, and says how that was, after how many
// reconciles, and what was missed on the way.
func (b *stateSpace) follow(st state) (end string, steps int, missed []string) {
	g, seen := b.snapshot(st)
	th := &theatre{Simulation: grouptest.New(g), view: seen.PD, table: st.table, data: map[string]string{}, dead: map[types.UID]bool{}, rounds: map[types.UID]int{}, next: 1000}
	th.Now, th.Lease, th.HolderLost, th.Others = seen.Now, seen.Lease, seen.HolderLost, seen.Groups[:1]
	for at := range b.stored {
		th.ExecutePlan(observation.Snapshot{}, planning.Plan{Objects: planning.Objects{Revision: &b.stored[at]}})
	}
	for _, i := range seen.Instances {
		th.AddInstance(i, member.WasReady(i))
		if i.Status.Member != nil {
			th.data[i.Name] = i.Status.Member.ID
		}
		if seen.StatusPorts[i.Name].State == statusport.Running {
			th.rounds[i.Status.PodUID] = 1
		}
		if st.failover() != "" && !member.WasReady(i) {
			th.dead[i.UID] = true
		}
	}
	th.OnStop = func(pod grouptest.Pod, others int) {
		i := th.Instances()[slices.Index(th.Names(), pod.Name)]
		if i.DeletionTimestamp == nil && !st.has("suspended") && th.Lease.Holder.Instance != pod.Name && th.at(pod.Name) >= 0 {
			missed = append(missed, fmt.Sprintf("%s is stopped without the Lease while %d others serve", pod.Name, others))
		}
		if other := th.idle(); other != "" && other != pod.Name && th.rounds[pod.UID] > 1 && th.at(pod.Name) >= 0 && !st.has("suspended") {
			missed = append(missed, fmt.Sprintf("%s is stopped while the store of %s does not serve", pod.Name, other))
		}
	}
	last := ""
	for steps = range enough {
		now := th.Snapshot()
		now.PDGroup, now.TiKVGroups, now.PD = seen.PDGroup, seen.TiKVGroups, th.view
		now.PD.Stores = slices.Clone(th.view.Stores)
		for _, i := range now.Instances {
			if _, ready := member.ReadySince(i); ready {
				th.rounds[i.Status.PodUID]++
				now.StatusPorts = saying(now.StatusPorts, i, th.rounds[i.Status.PodUID] == 1)
			}
		}
		p, err := b.plan(g, now)
		if err != nil {
			return err.Error(), steps, missed
		}
		calls := th.ExecutePlan(now, p.Plan)
		th.Report(now, p.Plan)
		for _, m := range reportMembers(g, now, p, th.Now) {
			th.WriteMemberStatus(m)
		}
		th.view.PlacementRules = th.view.PlacementRules || p.EnablePlacementRules
		th.Now = th.Now.Add(10 * time.Second)
		th.obey(calls)
		th.live()
		th.beat()
		away := th.Lease.Holder.Kind == v1alpha1.KindTiFlashGroup && !slices.ContainsFunc(th.Instances(), th.Lease.IsHeldBy)
		th.HolderLost, th.HolderReturns = away && th.Lease.Recreating == "", away && th.Lease.Recreating != ""
		if n := th.columns(); n < st.table && n < lowest(st) {
			missed = append(missed, fmt.Sprintf("%d stores are left, and a table wants %d", n, st.table))
		}
		picture, j := th.picture(), judge(st, now, p)
		if picture == last && len(th.dead) > 0 {
			if st.has("add") && !j.hasReplacements() {
				missed = append(missed, fmt.Sprintf("%d stores are dead, and there are %d", j.deaths(), len(th.Instances())))
			}
			th.dead, last = nil, ""
			continue
		}
		if picture == last {
			switch {
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

// lowest is how many stores there were that are not leaving.
func lowest(st state) (n int) {
	for _, m := range st.slots {
		if m.is == "serves" || m.is == "forgotten" || m.is == "restarts" {
			n++
		}
	}
	return n
}

// hasReplacements reports whether there is a store more for each dead one. One that was
// deleted may come back in its place, or not.
func (j judgement) hasReplacements() bool {
	wanted, staying := int(j.replicas)+j.deaths(), 0
	for _, i := range j.seen.Instances {
		if i.DeletionTimestamp == nil {
			staying++
		}
	}
	return j.deaths() == 0 || staying <= wanted && wanted <= len(j.seen.Instances) || j.plan.Outcome.Reason == v1alpha1.ReasonScaleInRefused
}

// live lets everybody do what he can, but for those who are dead.
func (th *theatre) live() {
	var names []string
	for _, i := range th.Instances() {
		if th.dead[i.UID] {
			th.Operate(i.Name)
		} else {
			names = append(names, i.Name)
		}
	}
	th.AdvanceIn(names)
}

func (th *theatre) at(pod string) int {
	return slices.IndexFunc(th.view.Stores, func(s pd.Store) bool { return strings.HasPrefix(s.Address, pod+".") })
}

// idle names a store of which a table has a replica that says that it does not serve.
func (th *theatre) idle() string {
	for _, i := range th.Instances() {
		if at := th.at(i.Name); th.Pod(i.Name).Ready && th.rounds[i.Status.PodUID] == 1 && at >= 0 && th.view.Stores[at].State != pd.StateOffline {
			return i.Name
		}
	}
	return ""
}

// columns counts the TiFlash stores that are not leaving.
func (th *theatre) columns() (n int) {
	for _, s := range th.view.Stores {
		if s.Labels["engine"] == "tiflash" && s.State != pd.StateOffline {
			n++
		}
	}
	return n
}

// obey does what PD is told.
func (th *theatre) obey(calls []component.Call) {
	for _, c := range calls {
		at := slices.IndexFunc(th.view.Stores, func(s pd.Store) bool { return s.ID == c.Target })
		switch {
		case at < 0:
		case c.Verb == component.DeleteStore:
			th.view.Stores[at].State, th.view.Stores[at].NotUpSince = pd.StateOffline, time.Time{}
		case c.Verb == component.RestoreStore && th.view.Stores[at].State == pd.StateOffline:
			th.view.Stores[at].State = pd.StateUp
		}
	}
}

// beat lets stores register and send heartbeats, and those that are to go leave
// when the others have room for the table's replicas.
func (th *theatre) beat() {
	up := 0
	for _, i := range th.Instances() {
		pod := th.Pod(i.Name)
		at := th.at(i.Name)
		if at < 0 {
			if pod.Ready && (th.data[i.Name] == "" || i.Status.Member == nil) {
				th.next++
				th.data[i.Name] = fmt.Sprint(th.next)
				th.view.Stores = append(th.view.Stores, columns(th.data[i.Name], i.Name, "basic-tiflash", pd.StateUp))
			}
			continue
		}
		if s := &th.view.Stores[at]; s.State != pd.StateOffline {
			s.State = pd.StateDown
			if pod.Ready {
				s.State = pd.StateUp
				up++
			}
			s.NotUpSince = notUpSince(s.State)
		}
	}
	if up >= th.table {
		th.view.Stores = slices.DeleteFunc(th.view.Stores, func(s pd.Store) bool { return s.State == pd.StateOffline })
	}
}

// picture is all that moves, in a line.
func (th *theatre) picture() string {
	text := fmt.Sprint(th.Lease.Holder, th.Lease.Holder.UID, th.Lease.Recreating, th.idle())
	for _, i := range th.Instances() {
		text += fmt.Sprintf(" %s/%d/%v/%v/%v/%v", i.UID, i.Generation, i.Annotations, i.DeletionTimestamp, i.Status.PodUID, th.Pod(i.Name).Ready)
		for _, c := range i.Status.Conditions {
			text += fmt.Sprintf(" %s=%s/%v", c.Type, c.Status, c.ObservedGeneration == i.Generation)
		}
	}
	for _, s := range th.view.Stores {
		text += " " + s.ID + s.State
	}
	return text
}
