package recovery

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// PD-22.
func TestAMatchingRequestIsRecordedBeforeAnythingIsDone(t *testing.T) {
	g := stricken(right)
	s := survived(t, g)
	next, o := NextRecord(g, s)
	require.NotNil(t, next)
	assert.Equal(t, v1alpha1.RecoveryStopping, next.Phase)
	assert.Equal(t, right, next.Request)
	assert.Equal(t, v1alpha1.PDRecoveryMember{Name: "a-0", UID: "uid-a-0"}, next.Survivor)
	assert.Equal(t, []v1alpha1.PDRecoveryMember{{Name: "a-1", UID: "uid-a-1"}, {Name: "a-2", UID: "uid-a-2"}}, next.Discarded)
	assert.Equal(t, step.KindAfter, o.Kind)
	assert.False(t, IsActive(g), "what is done follows from what was read")
}

// PD-22: everything that does not match, or is not allowed now, is answered with
// what to type, and nothing is done for it.
func TestEveryOtherRequestIsRefusedWithARemedy(t *testing.T) {
	pod := func(slot int, reason string) func(*observation.Snapshot) {
		return func(s *observation.Snapshot) {
			s.Instances[slot].Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionPodReady, Status: metav1.ConditionFalse, Reason: reason}}
		}
	}
	group0 := func(*v1alpha1.PDGroup) {}
	for name, c := range map[string]struct {
		request string
		group   func(*v1alpha1.PDGroup)
		seen    func(*observation.Snapshot)
		words   []string
		waits   bool
	}{
		"without a cluster":              {request: "a-0", words: []string{"kubectl -n ns annotate pdgroup a"}},
		"without a member":               {request: "/73", words: []string{"kubectl -n ns annotate pdgroup a"}},
		"with something behind it":       {request: "a-0/73/now", words: []string{"kubectl -n ns annotate pdgroup a"}},
		"for another cluster":            {request: "a-0/74", words: []string{"74", "73", "kubectl"}},
		"for a member that is not there": {request: "a-7/73", words: []string{"no Instance a-7", "kubectl"}},
		"before there is a cluster":      {request: right, group: func(g *v1alpha1.PDGroup) { g.Status.ClusterID = "" }, words: []string{"not bootstrapped", "recover-quorum-"}},
		"while the group is paused":      {request: right, group: func(g *v1alpha1.PDGroup) { g.Spec.Paused = true }, words: []string{"spec.paused", "kubectl"}},
		"while the group is suspended":   {request: right, group: func(g *v1alpha1.PDGroup) { g.Spec.Suspended = true }, words: []string{"spec.suspended", "kubectl"}},
		"while PD has a quorum": {request: right, seen: func(s *observation.Snapshot) {
			s.PD = pd.View{ClusterID: "73", Leader: "a-0", Members: []pd.Member{{Name: "a-0", Healthy: true}}}
		}, words: []string{"has a quorum", "recover-quorum-"}},
		"while PD was last seen well": {request: right, group: func(g *v1alpha1.PDGroup) { g.Status.Conditions[0].Status = metav1.ConditionTrue }, words: []string{"has a quorum"}},
		"while another PD answers":    {request: right, seen: func(s *observation.Snapshot) { s.PD = pd.View{ClusterID: "99"} }, words: []string{"99"}},
		"too soon": {request: right, group: func(g *v1alpha1.PDGroup) {
			g.Status.Conditions[0].LastTransitionTime = metav1.NewTime(clock().Add(-29 * time.Second))
		}, words: []string{"30s"}, waits: true},
		"while a majority runs":           {request: right, seen: func(s *observation.Snapshot) { s.Instances[2].Status.Conditions[0].Status = metav1.ConditionTrue }, words: []string{"a-0, a-2", "majority of 3", "kubectl"}},
		"of a single member":              {request: right, group: func(g *v1alpha1.PDGroup) { g.Status.Members = g.Status.Members[:1] }, words: []string{"a single member", "kubectl"}},
		"for a member that never joined":  {request: "a-2/73", group: func(g *v1alpha1.PDGroup) { g.Status.Members[2].Name = "a-5" }, seen: pod(2, v1alpha1.ReasonPodNotReady), words: []string{"was not in PD's last member list", "kubectl"}},
		"for a member without its claim":  {request: right, seen: func(s *observation.Snapshot) { delete(s.Claims, "a-0") }, words: []string{"data-a-0", "kubectl"}},
		"for a member with another claim": {request: right, seen: func(s *observation.Snapshot) { s.Claims["a-0"][0].UID = "new" }, words: []string{"data-a-0"}},
		"for a claim that is going":       {request: right, seen: func(s *observation.Snapshot) { s.Claims["a-0"][0].DeletionTimestamp = ptr.To(metav1.NewTime(clock())) }, words: []string{"data-a-0"}},
		"for a claim without its volume":  {request: right, seen: func(s *observation.Snapshot) { s.Instances[0].Status.Volumes[0].Phase = "Lost" }, words: []string{"data-a-0"}},
		"for a pod without a node":        {request: "a-1/73", words: []string{"a-1 cannot start", "kubectl"}},
		"for a pod without its image":     {request: right, seen: pod(0, v1alpha1.ReasonImagePullFailed), words: []string{"a-0 cannot start"}},
		"for a member that leaves":        {request: right, seen: func(s *observation.Snapshot) { s.Instances[0].Spec.Retire = true }, words: []string{"being removed"}},
		"for a member that was deleted":   {request: right, seen: func(s *observation.Snapshot) { s.Instances[0].DeletionTimestamp = ptr.To(metav1.NewTime(clock())) }, words: []string{"being removed"}},
		"beside a group that is gone":     {request: right, seen: func(s *observation.Snapshot) { s.Instances[2].OwnerReferences[0].UID = "before" }, words: []string{"a-2"}, waits: true},
		"while stores run": {request: right, seen: func(s *observation.Snapshot) {
			s.Groups = append(s.Groups, &v1alpha1.TiKVGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "b"}})
		}, words: []string{"TiKVGroup b", "patch tikvgroup b", "suspended"}},
		"before its operator has seen that TiDB is to stop": {request: right, seen: func(s *observation.Snapshot) {
			other := suspended(&v1alpha1.TiDBGroup{})
			other.SetGeneration(2)
			s.Groups = append(s.Groups, other)
		}, words: []string{"TiDBGroup b has not seen", "describe tidbgroup b"}, waits: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := stricken(c.request)
			if c.group == nil {
				c.group = group0
			}
			c.group(g)
			s := survived(t, g)
			if c.seen != nil {
				c.seen(&s)
			}
			next, o := NextRecord(g, s)
			assert.Nil(t, next)
			kind := step.KindStall
			if c.waits {
				kind = step.KindWait
			}
			assert.Equal(t, kind, o.Kind, "%s", o.Message)
			assert.Equal(t, v1alpha1.ReasonRecoveryRefused, o.Reason)
			assert.Less(t, len(o.Message), 512, "it would be cut off")
			for _, word := range c.words {
				assert.Contains(t, o.Message, word)
			}
		})
	}
}

// suspended is a group whose operator has seen that it is.
func suspended(g v1alpha1.Group) v1alpha1.Group {
	g.SetName("b")
	g.SetGeneration(1)
	g.GetComponentSpec().Suspended = true
	g.GetGroupStatus().Conditions = []metav1.Condition{{Type: v1alpha1.ConditionUpToDate, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNewRendering, ObservedGeneration: 1}}
	return g
}

// PD-22: what counts is that nothing runs that PD serves, whatever has become of
// its group. The answer names the Instance, its pod and what helps.
func TestNoRecoveryBeginsWhileAClientOfPDRuns(t *testing.T) {
	deleted := func(i *v1alpha1.Instance) { i.DeletionTimestamp = ptr.To(metav1.NewTime(clock())) }
	rests := func(i *v1alpha1.Instance) { i.Spec.Suspended = true }
	unseen := func(i *v1alpha1.Instance) { i.Generation++ }
	// Its predecessor's finalizers were taken away, and the pod of that one runs on.
	usurped := func(i *v1alpha1.Instance) {
		rests(i)
		i.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionPodReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonPodOfAnotherOwner}}
	}
	tikv, going := suspended(&v1alpha1.TiKVGroup{}), suspended(&v1alpha1.TiKVGroup{})
	going.GetComponentSpec().Suspended = false
	going.SetDeletionTimestamp(ptr.To(metav1.NewTime(clock())))
	paused := suspended(&v1alpha1.TiKVGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns"}})
	paused.GetComponentSpec().Paused = true
	owned := func(i *v1alpha1.Instance) {
		i.OwnerReferences = []metav1.OwnerReference{{APIVersion: v1alpha1.GroupName + "/v1alpha1", Kind: i.Spec.Group.Kind, Name: i.Spec.Group.Name, Controller: ptr.To(true)}}
	}
	const resume = `kubectl -n ns patch tikvgroup b --type=merge -p '{"spec":{"paused":false}}'`
	// A policy of the API server refuses it for an Instance that has an owner.
	const patch = `kubectl -n ns patch instance b-0 --type=merge -p '{"spec":{"suspended":true}}'`
	for name, c := range map[string]struct {
		groups  []v1alpha1.Group
		clients []*v1alpha1.Instance
		words   []string // none if it is obeyed
	}{
		"nothing there":                         {},
		"a group without Instances":             {groups: []v1alpha1.Group{tikv}},
		"a group that waits for something else": {groups: []v1alpha1.Group{tikv}, clients: []*v1alpha1.Instance{client("TiKVGroup", "b", false, rests)}},
		"a group whose last pod stops":          {groups: []v1alpha1.Group{tikv}, clients: []*v1alpha1.Instance{client("TiKVGroup", "b", true, rests)}, words: []string{"Instance b-0 of TiKVGroup b still has its pod b-0", "describe instance b-0"}},
		"a group that has not begun to stop":    {groups: []v1alpha1.Group{tikv}, clients: []*v1alpha1.Instance{client("TiKVGroup", "b", true)}, words: []string{"pod b-0", "describe tikvgroup b"}},
		"a deleted store that waits for PD":     {groups: []v1alpha1.Group{tikv}, clients: []*v1alpha1.Instance{client("TiKVGroup", "b", true, owned, deleted)}, words: []string{"pod b-0", "kubectl -n ns describe tikvgroup b"}},
		"one of a group that is paused":         {groups: []v1alpha1.Group{paused}, clients: []*v1alpha1.Instance{client("TiKVGroup", "b", true, owned)}, words: []string{"pod b-0", resume}},
		"a deleted one of a paused group":       {groups: []v1alpha1.Group{paused}, clients: []*v1alpha1.Instance{client("TiKVGroup", "b", true, owned, deleted)}, words: []string{"pod b-0", resume}},
		"one that a paused group has stopped":   {groups: []v1alpha1.Group{paused}, clients: []*v1alpha1.Instance{client("TiKVGroup", "b", true, owned, rests)}, words: []string{"pod b-0", "describe instance b-0"}},
		"one whose group is being deleted":      {groups: []v1alpha1.Group{going}, clients: []*v1alpha1.Instance{client("TiKVGroup", "b", true, owned)}, words: []string{"pod b-0", "describe instance b-0"}},
		"a group that is being deleted":         {groups: []v1alpha1.Group{going}, clients: []*v1alpha1.Instance{client("TiKVGroup", "b", true, deleted)}, words: []string{"pod b-0", "describe instance b-0"}},
		"a group that was deleted":              {clients: []*v1alpha1.Instance{client("TiKVGroup", "b", true, deleted)}, words: []string{"TiKVGroup b still has its pod b-0", "describe instance b-0"}},
		"an orphaned store":                     {clients: []*v1alpha1.Instance{client("TiKVGroup", "b", true)}, words: []string{"pod b-0", patch}},
		"an orphaned store between two pods":    {clients: []*v1alpha1.Instance{client("TiKVGroup", "b", false)}, words: []string{"b-0 of TiKVGroup b may still make its pod", patch}},
		"an orphaned store that was stopped":    {clients: []*v1alpha1.Instance{client("TiKVGroup", "b", false, rests)}},
		"one whose predecessor still runs":      {clients: []*v1alpha1.Instance{client("TiKVGroup", "b", false, usurped)}, words: []string{"pod b-0 of another owner", "describe instance b-0"}},
		"one whose operator has not seen it":    {clients: []*v1alpha1.Instance{client("TiKVGroup", "b", false, rests, unseen)}, words: []string{"may still make its pod", "describe instance b-0"}},
		"TiDB":                                  {clients: []*v1alpha1.Instance{client("TiDBGroup", "b", true)}, words: []string{"of TiDBGroup b", patch}},
		"TiFlash behind a store at rest":        {clients: []*v1alpha1.Instance{client("TiKVGroup", "b", false, rests), client("TiFlashGroup", "f", true)}, words: []string{"Instance f-0 of TiFlashGroup f"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := stricken(right)
			s := survived(t, g)
			s.Groups, s.ClusterInstances = append(s.Groups, c.groups...), c.clients
			next, o := NextRecord(g, s)
			assert.Equal(t, len(c.words) == 0, next != nil, "%s", o.Message)
			if len(c.words) > 0 {
				assert.Equal(t, step.KindWait, o.Kind)
				assert.Equal(t, v1alpha1.ReasonRecoveryRefused, o.Reason)
				assert.Contains(t, o.Message, "not yet: ")
				assert.Less(t, len(o.Message), 512, "it would be cut off")
			}
			for _, word := range c.words {
				assert.Contains(t, o.Message, word)
			}

			for _, phase := range []v1alpha1.PDRecoveryPhase{v1alpha1.RecoveryStopping, v1alpha1.RecoveryForcing} {
				g, s := under(t, phase, still)
				s.Groups, s.ClusterInstances = append(s.Groups, c.groups...), c.clients
				p, _ := changed(t, g, s)
				assert.Equal(t, len(c.words) == 0 && phase == v1alpha1.RecoveryForcing, ForcesMember(p))
				next, o := NextRecord(g, s)
				assert.Equal(t, len(c.words) > 0 || phase == v1alpha1.RecoveryForcing, next.Phase == phase, "%s", o.Message)
				for _, word := range c.words {
					assert.Contains(t, o.Message, word)
				}
			}
		})
	}
}

func TestPodsThatOnlyWaitForAQuorumCanBeRecoveredFrom(t *testing.T) {
	for _, reason := range startableReasons() {
		g := stricken(right)
		s := survived(t, g, func(s *observation.Snapshot) {
			s.Instances[0].Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionPodReady, Status: metav1.ConditionFalse, Reason: reason}}
			s.PD.Err = errors.New("connection refused")
		})
		next, o := NextRecord(g, s)
		assert.NotNil(t, next, "%s: %s", reason, o.Message)
	}
}

// A PD that was suspended may work when it is started: it has its time to find a quorum.
func TestARequestWaitsForAPDThatIsResumed(t *testing.T) {
	g := stricken(right)
	g.Status.Conditions[0].Status, g.Status.Conditions[0].Reason = metav1.ConditionFalse, v1alpha1.ReasonSuspended
	next, o := NextRecord(g, survived(t, g))
	assert.Nil(t, next)
	assert.Equal(t, step.KindWait, o.Kind)
	assert.Contains(t, o.Message, "not yet: PD must have been without a quorum for 30s")
}

func TestARequestIsObeyedOnceAndForgottenWhenItIsTakenOff(t *testing.T) {
	g := stricken(right)
	g.Status.Recovery = &v1alpha1.PDRecovery{Request: right, Phase: v1alpha1.RecoveryFinished}
	s := survived(t, g)
	next, o := NextRecord(g, s)
	assert.Equal(t, g.Status.Recovery, next)
	assert.Equal(t, step.KindStall, o.Kind)
	assert.Contains(t, o.Message, "PD was rebuilt from Instance a-0 for it before: to rebuild it once more: kubectl -n ns annotate pdgroup a groups.tidb.dev/recover-quorum-, then kubectl -n ns annotate pdgroup a --overwrite groups.tidb.dev/recover-quorum="+right)

	works := s
	works.PD = pd.View{ClusterID: "73", Leader: "a-0", Members: []pd.Member{{Name: "a-0", Healthy: true}}}
	next, o = NextRecord(g, works)
	assert.Equal(t, g.Status.Recovery, next)
	assert.Equal(t, step.KindDone, o.Kind, "nothing is to be rebuilt")

	g.Annotations[v1alpha1.AnnotationRecoverQuorum] = "a-0/74"
	next, o = NextRecord(g, s)
	assert.Equal(t, g.Status.Recovery, next, "what is refused does not count")
	assert.Equal(t, v1alpha1.ReasonRecoveryRefused, o.Reason)

	g.Annotations = nil
	next, o = NextRecord(g, s)
	assert.Nil(t, next)
	assert.Equal(t, step.KindDone, o.Kind)
}

// A PDGroup that came back with one claim of three knows neither its cluster nor
// its members: a user tells it, as docs/tasks/lost-quorum.md says.
func TestAGroupThatCameBackWithAMinorityIsRecoveredWhenAUserNamesItsMembers(t *testing.T) {
	g := stricken(right)
	s := survived(t, g, func(s *observation.Snapshot) {
		s.Instances = s.Instances[:1]
		s.Instances[0].Status.Conditions[0].Status, s.Instances[0].Status.Conditions[0].Reason = metav1.ConditionFalse, v1alpha1.ReasonContainerCrashing
		s.Claims = map[string][]metav1.ObjectMeta{"a-0": s.Claims["a-0"]}
	})
	next, o := NextRecord(g, s)
	assert.NotEqual(t, step.KindStall, o.Kind, o.Message)
	assert.Equal(t, v1alpha1.RecoveryStopping, next.Phase)
	g.Status.Recovery = next
	next, _ = NextRecord(g, s)
	assert.Equal(t, v1alpha1.RecoveryForcing, next.Phase, "there is no other member to stop")

	g = stricken(right)
	g.Status.ClusterID, g.Status.Members = "", nil
	_, o = NextRecord(g, s)
	assert.Equal(t, step.KindStall, o.Kind)
	assert.Contains(t, o.Message, "there is nothing to recover")
}
