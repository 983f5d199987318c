package controller

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/pdgroup/bootstrap"
	"github.com/tidb-groups/tidb-groups/operators/pdgroup/membership"
	"github.com/tidb-groups/tidb-groups/operators/pdgroup/recovery"
	"github.com/tidb-groups/tidb-groups/operators/pdgroup/voting"
	"github.com/tidb-groups/tidb-groups/shared/conditions"
	"github.com/tidb-groups/tidb-groups/shared/groupstatus"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/rollout"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// States of a PD member, as an Instance shows them.
const (
	stateLeader   = "Leader"
	stateFollower = "Follower"
	stateRemoved  = "Removed"
)

// reportStatus computes the status of a PDGroup, and how the reconcile ends: what PD
// does not say must be asked again even if everything else has arrived. It is
// pure.
func reportStatus(g *v1alpha1.PDGroup, s observation.Snapshot, p groupPlan, outcome step.Outcome, now time.Time) (v1alpha1.PDGroupStatus, *conditions.Set, step.Outcome) {
	set := conditions.New(g.Status.Conditions, g.Generation, now)
	status := v1alpha1.PDGroupStatus{ClusterID: p.ClusterID, Leader: g.Status.Leader, Members: g.Status.Members, Recovery: p.Recovery, CARotation: p.Issuance.Rotation}
	status.Scheme, status.PeersHaveBothSchemes = membership.Scheme(g, s), membership.HaveBothSchemes(g, s)
	if status.Scheme == v1alpha1.SchemeHTTPS {
		status.ClientSecretName = v1alpha1.ClientSecretName(g)
	}
	if p.ClusterID == "" {
		status.InitialMembers = bootstrap.RecordInitial(g.Status.InitialMembers, membership.OwnInstances(g, s))
	}
	if p.ClusterID != "" {
		set.MarkTrue(v1alpha1.ConditionBootstrapped, v1alpha1.ReasonBootstrapped, "PD has cluster ID "+p.ClusterID)
	} else {
		set.MarkFalse(v1alpha1.ConditionBootstrapped, v1alpha1.ReasonBootstrapping, "PD has not answered with a cluster ID yet")
	}
	if bootstrap.IsPDUsable(g, s) {
		status.Leader = s.PD.Leader
		status.Members = nil
		for _, m := range s.PD.Members {
			// Members that have not started yet have no name, and status lists each name once.
			if slices.ContainsFunc(status.Members, func(listed v1alpha1.PDMember) bool { return listed.Name == m.Name }) {
				continue
			}
			status.Members = append(status.Members, v1alpha1.PDMember{Name: m.Name, ID: m.ID, Healthy: m.Healthy, ClientURL: m.ClientURL})
		}
	}
	setQuorumHealthy(g, s, set)
	serving, unsure := checkServing(set, now)
	// Do not report Ready until PD's state is stable: dependents start on it.
	serving = serving && !recovery.IsActive(g)
	p.Outcome = groupstatus.WithDeadline(g, p.Outcome, unsure)
	status.GroupStatus = groupstatus.Report(g, s, p.Plan, groupstatus.Work{Acted: outcome, Serving: serving}, set)
	return status, set, step.Worst(outcome, p.Outcome)
}

// setQuorumHealthy sets QuorumHealthy.
func setQuorumHealthy(g *v1alpha1.PDGroup, s observation.Snapshot, set *conditions.Set) {
	const condition = v1alpha1.ConditionQuorumHealthy
	healthy, was := s.PD.CountHealthy(), meta.FindStatusCondition(g.Status.Conditions, condition)
	switch {
	case g.Spec.Suspended && !groupstatus.IsSuspensionPaused(g, s):
		set.MarkFalse(condition, v1alpha1.ReasonSuspended, "suspended")
	case !bootstrap.OwnPD(g, s).IsAllowed():
		set.MarkFalse(condition, v1alpha1.ReasonClusterIDMismatch, bootstrap.OwnPD(g, s).Reason())
	case s.PD.Err != nil && !set.Is(v1alpha1.ConditionBootstrapped):
		set.MarkFalse(condition, v1alpha1.ReasonBootstrapping, "PD does not answer yet")
	case s.PD.Err != nil && was != nil && was.Reason == v1alpha1.ReasonSuspended:
		// The time in which it has no quorum begins now.
		set.MarkUnknown(condition, v1alpha1.ReasonPDUnreachable, "PD is being started again")
	case s.PD.Err != nil && rollout.Count(s, "").Ready == 0:
		set.MarkFalse(condition, v1alpha1.ReasonPDUnreachable, "PD does not answer and no Instance is ready")
	case errors.Is(s.PD.Err, pd.ErrNoLeader):
		set.MarkUnknown(condition, v1alpha1.ReasonQuorumLost, "PD has no leader: if this is not over in some seconds, its members have lost each other or too many of them are down")
	case s.PD.Err != nil:
		set.MarkUnknown(condition, v1alpha1.ReasonPDUnreachable, "PD does not answer: "+s.PD.Err.Error())
	case !s.PD.HasQuorum() && !set.Is(v1alpha1.ConditionBootstrapped):
		set.MarkFalse(condition, v1alpha1.ReasonBootstrapping, fmt.Sprintf("%d of %d members are healthy and none leads yet", healthy, len(s.PD.Members)))
	case !s.PD.HasQuorum():
		set.MarkFalse(condition, v1alpha1.ReasonQuorumLost, fmt.Sprintf("%d of %d members are healthy and the leader is %q: start the missing members again", healthy, len(s.PD.Members), s.PD.Leader))
	default:
		set.MarkTrue(condition, v1alpha1.ReasonQuorumHealthy, fmt.Sprintf("%d of %d members are healthy", healthy, len(s.PD.Members)))
	}
}

// checkServing reports whether PD may be depended on and, if it does not answer as it
// should, why and when to look again.
func checkServing(set *conditions.Set, now time.Time) (bool, step.Outcome) {
	if !set.Is(v1alpha1.ConditionBootstrapped) {
		return false, waitForCondition(set, v1alpha1.ConditionBootstrapped)
	}
	if set.Is(v1alpha1.ConditionQuorumHealthy) {
		return true, step.Done()
	}
	if set.Get(v1alpha1.ConditionQuorumHealthy).Status == metav1.ConditionUnknown {
		return groupstatus.ToleratesPDOutage(set, v1alpha1.ConditionQuorumHealthy, now)
	}
	return false, waitForCondition(set, v1alpha1.ConditionQuorumHealthy)
}

// waitForCondition waits for PD to make a condition True.
func waitForCondition(set *conditions.Set, condition string) step.Outcome {
	c := set.Get(condition)
	return step.Wait("PD", time.Minute, c.Reason, c.Message)
}

// reportMembers reports every Instance's member as PD lists it. While PD cannot be
// asked nothing new is known, and what was reported last is left standing, but
// for members whose pod is seen not to run: they are not healthy, whatever PD would say.
func reportMembers(g *v1alpha1.PDGroup, s observation.Snapshot, p groupPlan, now time.Time) []groupstatus.Member {
	var out []groupstatus.Member
	for _, i := range s.Instances {
		set := conditions.NewMember(i.Status.Conditions, now)
		m := groupstatus.Member{Instance: i, Status: i.Status.Member}
		runs := meta.IsStatusConditionTrue(i.Status.Conditions, v1alpha1.ConditionPodReady)
		switch {
		case bootstrap.IsPDUsable(g, s):
			m.Status = reportListed(g, s, i, set)
		case !runs && !voting.IsPodUnknown(i) && meta.IsStatusConditionTrue(i.Status.Conditions, v1alpha1.ConditionHealthy):
			keepCondition(set, i, v1alpha1.ConditionJoined)
			set.MarkFalse(v1alpha1.ConditionHealthy, v1alpha1.ReasonMemberUnhealthy, "its pod does not run, and PD does not answer")
		case p.Drained[i.Name]:
			keepCondition(set, i, v1alpha1.ConditionJoined)
			keepCondition(set, i, v1alpha1.ConditionHealthy)
		default:
			continue
		}
		switch why := p.Waiting[i.Name]; {
		case p.Drained[i.Name]:
			set.MarkTrue(v1alpha1.ConditionDrained, v1alpha1.ReasonMemberLeft, describeRemoval(g))
		case why != "" && !meta.IsStatusConditionTrue(i.Status.Conditions, v1alpha1.ConditionDrained):
			set.MarkFalse(v1alpha1.ConditionDrained, v1alpha1.ReasonNotDrained, why)
		case membership.HasReturned(g, s, i):
			// Its removal was withdrawn; a later removal must begin again.
		default:
			keepCondition(set, i, v1alpha1.ConditionDrained)
		}
		m.Conditions = set.List()
		out = append(out, m)
	}
	return slices.Clip(out)
}

// describeRemoval says why a member has left PD.
func describeRemoval(g *v1alpha1.PDGroup) string {
	if recovery.IsActive(g) {
		return "PD is rebuilt without the member"
	}
	return "PD no longer lists the member"
}

// keepCondition puts a condition that an Instance carries as it is.
func keepCondition(set *conditions.Set, i *v1alpha1.Instance, kind string) {
	if c := meta.FindStatusCondition(i.Status.Conditions, kind); c != nil {
		set.SetCondition(kind, c.Status, c.Reason, c.Message)
	}
}

// reportListed sets Joined and Healthy as PD lists a member, and returns what is known
// of it. Of one that has left, what was known last stays.
func reportListed(g *v1alpha1.PDGroup, s observation.Snapshot, i *v1alpha1.Instance, set *conditions.Set) *v1alpha1.MemberStatus {
	member, listed := membership.FindMember(g, s, i)
	if !listed || member.Name == "" {
		message := "PD does not list member " + i.Name
		switch {
		case listed:
			message = "PD waits for member " + i.Name + " to start"
		case i.Status.Member != nil:
			message = "PD no longer lists member " + i.Name + " and never takes it back with its data: a new member replaces it; if not: kubectl -n " + i.Namespace + " delete instance " + i.Name
		}
		set.MarkFalse(v1alpha1.ConditionJoined, v1alpha1.ReasonMemberNotListed, message)
		set.MarkFalse(v1alpha1.ConditionHealthy, v1alpha1.ReasonMemberNotListed, message)
		if i.Status.Member == nil {
			return nil
		}
		gone := *i.Status.Member
		gone.State = stateRemoved
		return &gone
	}
	set.MarkTrue(v1alpha1.ConditionJoined, v1alpha1.ReasonMemberJoined, "PD lists member "+i.Name)
	if member.Healthy {
		set.MarkTrue(v1alpha1.ConditionHealthy, v1alpha1.ReasonMemberHealthy, "PD calls the member healthy")
	} else {
		set.MarkFalse(v1alpha1.ConditionHealthy, v1alpha1.ReasonMemberUnhealthy, "PD calls the member unhealthy")
	}
	state := stateFollower
	if s.PD.Leader == member.Name {
		state = stateLeader
	}
	return &v1alpha1.MemberStatus{ID: member.ID, Name: member.Name, State: state, Address: member.ClientURL}
}
