package controller

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/pdgroup/bootstrap"
	"github.com/tidb-groups/tidb-groups/operators/pdgroup/membership"
	"github.com/tidb-groups/tidb-groups/operators/pdgroup/voting"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/testkit/stage"
)

// P11: status lists each name once, or the API server refuses all of it.
func TestMembersWithoutANameAreReportedOnce(t *testing.T) {
	g, s := stored(), started(t, stored(), 3)
	bootstrapped(g)
	s.PD.Members = append(s.PD.Members, pd.Member{ID: "98"}, pd.Member{ID: "99"})
	status, _, _ := reportStatus(g, s, groupPlan{ClusterID: "7"}, step.Done(), clock())
	names := map[string]bool{}
	for _, m := range status.Members {
		assert.False(t, names[m.Name], "%q is told twice", m.Name)
		names[m.Name] = true
	}
	assert.Len(t, names, 4)
}

func TestReport(t *testing.T) {
	paused := func(g *v1alpha1.PDGroup) { g.Spec.Paused = true }
	suspended := func(g *v1alpha1.PDGroup) { g.Spec.Suspended = true }
	deleting := func(g *v1alpha1.PDGroup) { g.DeletionTimestamp = ptr.To(metav1.NewTime(clock())) }
	noQuorum := func(s *observation.Snapshot) { s.PD.Leader = "" }
	memberless := func(s *observation.Snapshot) { s.Instances, s.PD = nil, pd.View{Err: errNoMembers} }
	stopped := func(s *observation.Snapshot) {
		pdUnreachable(s)
		for _, i := range s.Instances {
			i.Status.PodUID = ""
			says(i, "Ready", "False", v1alpha1.ReasonSuspended)
		}
	}
	for name, c := range map[string]struct {
		edit                                  func(*v1alpha1.PDGroup)
		change                                func(*observation.Snapshot)
		ready, upToDate, bootstrapped, quorum string
	}{
		"a new group":                            {nil, memberless, "False/Creating", "False/Creating", "False/Bootstrapping", "False/Bootstrapping"},
		"members that found their cluster":       {nil, noQuorum, "False/Bootstrapping", "False/Bootstrapping", "False/Bootstrapping", "False/Bootstrapping"},
		"a cluster that was just bootstrapped":   {nil, nil, "True/Ready", "True/UpToDate", "True/Bootstrapped", "True/QuorumHealthy"},
		"a cluster that serves":                  {bootstrapped, nil, "True/Ready", "True/UpToDate", "True/Bootstrapped", "True/QuorumHealthy"},
		"a member that is down":                  {bootstrapped, unready(1), "True/Ready", "False/ImagePullFailed", "True/Bootstrapped", "True/QuorumHealthy"},
		"a lost quorum":                          {bootstrapped, noQuorum, "False/QuorumLost", "False/QuorumLost", "True/Bootstrapped", "False/QuorumLost"},
		"a PD that was never heard of":           {bootstrapped, pdUnreachable, "False/PDUnreachable", "False/PDUnreachable", "True/Bootstrapped", "Unknown/PDUnreachable"},
		"a PD of another cluster":                {bootstrapped, func(s *observation.Snapshot) { s.PD.ClusterID = "9" }, "False/ClusterIDMismatch", "False/ClusterIDMismatch", "True/Bootstrapped", "False/ClusterIDMismatch"},
		"an edit that makes no sense":            {func(g *v1alpha1.PDGroup) { bootstrapped(g); g.Spec.Config = "=" }, nil, "True/Ready", "False/InvalidSpec", "True/Bootstrapped", "True/QuorumHealthy"},
		"a pause":                                {func(g *v1alpha1.PDGroup) { bootstrapped(g); paused(g) }, nil, "True/Ready", "True/UpToDate", "True/Bootstrapped", "True/QuorumHealthy"},
		"a suspension under way":                 {func(g *v1alpha1.PDGroup) { bootstrapped(g); suspended(g) }, nil, "False/Suspended", "False/Suspended", "True/Bootstrapped", "False/Suspended"},
		"a suspension that a pause holds back":   {func(g *v1alpha1.PDGroup) { bootstrapped(g); suspended(g); paused(g) }, nil, "True/Ready", "False/Paused", "True/Bootstrapped", "True/QuorumHealthy"},
		"a suspension that was paused later":     {func(g *v1alpha1.PDGroup) { bootstrapped(g); suspended(g); paused(g) }, stopped, "False/Suspended", "True/UpToDate", "True/Bootstrapped", "False/Suspended"},
		"a suspension that has arrived":          {func(g *v1alpha1.PDGroup) { bootstrapped(g); suspended(g) }, stopped, "False/Suspended", "True/UpToDate", "True/Bootstrapped", "False/Suspended"},
		"a deletion":                             {func(g *v1alpha1.PDGroup) { bootstrapped(g); deleting(g) }, nil, "True/Ready", "False/Deleting", "True/Bootstrapped", "True/QuorumHealthy"},
		"a bootstrapped cluster without members": {bootstrapped, memberless, "False/Creating", "False/Creating", "True/Bootstrapped", "False/PDUnreachable"},
	} {
		t.Run(name, func(t *testing.T) {
			g := stored()
			if c.edit != nil {
				c.edit(g)
			}
			s := started(t, stored(), 3)
			if c.change != nil {
				c.change(&s)
			}
			out, _ := reported(t, g, s, clock())
			assert.Equal(t, c.ready, stage.Verdict(out, v1alpha1.ConditionReady), stage.Dump(out))
			assert.Equal(t, c.upToDate, stage.Verdict(out, v1alpha1.ConditionUpToDate))
			assert.Equal(t, c.bootstrapped, stage.Verdict(out, v1alpha1.ConditionBootstrapped))
			assert.Equal(t, c.quorum, stage.Verdict(out, v1alpha1.ConditionQuorumHealthy))
			assert.Equal(t, c.edit != nil && g.Status.ClusterID != "" || c.bootstrapped[0] == 'T', out.Status.ClusterID != "")
			again, _ := reported(t, out, s, clock().Add(time.Hour))
			if c.quorum[0] != 'U' {
				assert.Equal(t, out.Status, again.Status, "nothing changes by itself")
			}
		})
	}
}

// The time in which a group was suspended is none in which PD has failed to find a quorum: a request to
// rebuild it waits for that.
func TestPD22AResumedPDHasItsTimeToFindAQuorum(t *testing.T) {
	g := stored(bootstrapped, func(g *v1alpha1.PDGroup) { g.Spec.Suspended = true })
	s := started(t, stored(), 3, func(s *observation.Snapshot) {
		pdUnreachable(s)
		for _, i := range s.Instances {
			i.Status.PodUID = ""
			says(i, "Ready", "False", v1alpha1.ReasonSuspended)
		}
	})
	g, _ = reported(t, g, s, clock())
	g.Spec.Suspended = false
	for after := range 3 {
		g, _ = reported(t, g, s, clock().Add(time.Hour+time.Duration(after)*time.Second))
	}
	quorum := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionQuorumHealthy)
	assert.Equal(t, "False/PDUnreachable", stage.Verdict(g, v1alpha1.ConditionQuorumHealthy))
	assert.Equal(t, clock().Add(time.Hour+time.Second), quorum.LastTransitionTime.UTC())
}

func TestAPDOutageIsToleratedForAWhile(t *testing.T) {
	g := stored(bootstrapped)
	s := started(t, stored(), 3)
	served, end := reported(t, g, s, clock())
	assert.Equal(t, step.Done(), end)

	pdUnreachable(&s)
	quiet, end := reported(t, served, s, clock())
	assert.Equal(t, "True/Ready", stage.Verdict(quiet, v1alpha1.ConditionReady))
	assert.Equal(t, step.KindAfter, end.Kind, "the operator must look again by itself: nothing will tell it")
	assert.Equal(t, 30*time.Second, end.After)
	quiet, end = reported(t, quiet, s, clock().Add(29*time.Second))
	assert.Equal(t, "True/Ready", stage.Verdict(quiet, v1alpha1.ConditionReady))
	assert.Equal(t, time.Second, end.After)
	quiet, end = reported(t, quiet, s, clock().Add(30*time.Second))
	assert.Equal(t, "False/PDUnreachable", stage.Verdict(quiet, v1alpha1.ConditionReady))
	assert.Equal(t, step.KindWait, end.Kind)
	assert.Len(t, quiet.Status.Members, 3, "what was known last stays")

	// With no Instance ready there is nothing to bear with.
	for _, i := range s.Instances {
		says(i, "Ready", "False", v1alpha1.ReasonPodMissing)
	}
	gone, _ := reported(t, served, s, clock())
	assert.NotEqual(t, "True/Ready", stage.Verdict(gone, v1alpha1.ConditionReady))
}

func TestMembersAreReportedAsPDListsThem(t *testing.T) {
	g := stored(bootstrapped)
	s := started(t, stored(), 3, unready(1))
	s.PD.Members = s.PD.Members[:2]
	out := reportMembers(g, s, groupPlan{}, clock())
	require.Len(t, out, 3)
	assert.Equal(t, &v1alpha1.MemberStatus{ID: "1", Name: "basic-pd-0", State: "Leader", Address: "http://basic-pd-0"}, out[0].Status)
	assert.Equal(t, "Follower", out[1].Status.State)
	assert.True(t, meta.IsStatusConditionTrue(out[1].Conditions, v1alpha1.ConditionJoined))
	assert.True(t, meta.IsStatusConditionFalse(out[1].Conditions, v1alpha1.ConditionHealthy))
	assert.Nil(t, out[2].Status)
	assert.True(t, meta.IsStatusConditionFalse(out[2].Conditions, v1alpha1.ConditionJoined))
	pdUnreachable(&s)
	assert.Empty(t, reportMembers(g, s, groupPlan{}, clock()), "while PD does not answer nothing new is known")
	s = started(t, stored(), 3, func(s *observation.Snapshot) { s.PD.ClusterID = "9" })
	assert.Empty(t, reportMembers(g, s, groupPlan{}, clock()), "another cluster's PD is not asked")
}

// P2: a member that was said to have left and has not is not taken for gone by
// the next one who removes it.
func TestAMemberWhoseRemovalWasCancelledIsNotDrained(t *testing.T) {
	for name, c := range map[string]struct {
		change func(s *observation.Snapshot, i *v1alpha1.Instance)
		kept   bool
	}{
		"it has joined since":            {func(*observation.Snapshot, *v1alpha1.Instance) {}, false},
		"it is to go, and still answers": {func(_ *observation.Snapshot, i *v1alpha1.Instance) { i.Spec.Retire = true }, true},
		"it has never joined":            {func(s *observation.Snapshot, _ *v1alpha1.Instance) { s.PD.Members = s.PD.Members[:2] }, false},
		"it has never joined, and leaves": {func(s *observation.Snapshot, i *v1alpha1.Instance) {
			s.PD.Members, i.Spec.Retire = s.PD.Members[:2], true
		}, true},
		"it has left, and does not return": {func(s *observation.Snapshot, i *v1alpha1.Instance) {
			s.PD.Members, i.Status.Member = s.PD.Members[:2], &v1alpha1.MemberStatus{ID: "3"}
		}, true},
		"PD says nothing": {func(s *observation.Snapshot, _ *v1alpha1.Instance) { pdUnreachable(s) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := stored(bootstrapped)
			s := started(t, g, 3)
			i := s.Instances[2]
			i.Status.Conditions = append(i.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionDrained, Status: "True", Reason: v1alpha1.ReasonMemberLeft})
			c.change(&s, i)
			// A member that nothing is said of keeps what was said.
			kept := true
			for _, m := range reportMembers(g, s, groupPlan{}, clock()) {
				if m.Instance.Name == i.Name {
					kept = meta.FindStatusCondition(m.Conditions, v1alpha1.ConditionDrained) != nil
				}
			}
			assert.Equal(t, c.kept, kept)
			if _, listed := membership.FindMember(g, s, i); listed && bootstrap.IsPDUsable(g, s) && !i.Spec.Retire {
				p := voting.New(g, s).Prepare(component.Disruption{Instance: i, Verb: member.Remove}, clock())
				assert.False(t, p.Ready, "it has to leave PD first")
			}
		})
	}
}
