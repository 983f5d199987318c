package membership

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/pdgroup/bootstrap"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/names"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/verdict"
	"github.com/tidb-groups/tidb-groups/shared/workload"
)

// FindMember returns how PD lists the member of an Instance. One that was added and
// has not started yet has no name; it is known by where it is to listen.
func FindMember(g *v1alpha1.PDGroup, s observation.Snapshot, i *v1alpha1.Instance) (pd.Member, bool) {
	for _, m := range s.PD.Members {
		if PodName(g, m) == i.Name {
			return m, true
		}
	}
	return pd.Member{}, false
}

// OwnInstances returns the Instances that this group has made.
func OwnInstances(g *v1alpha1.PDGroup, s observation.Snapshot) []*v1alpha1.Instance {
	return slices.DeleteFunc(slices.Clone(s.Instances), func(i *v1alpha1.Instance) bool { return !workload.IsOwned(g, i) })
}

// MayTrustAnswer says whether PD's answer is something to act on.
func MayTrustAnswer(g *v1alpha1.PDGroup, s observation.Snapshot) verdict.Verdict {
	switch {
	case !bootstrap.OwnPD(g, s).IsAllowed():
		return verdict.Refuse("another cluster's PD answers")
	case s.PD.Err != nil:
		return verdict.Refuse(s.PD.Err.Error())
	case !s.PD.HasQuorum():
		return verdict.Refusef("PD has no quorum: %d of %d members are healthy and the leader is %q", s.PD.CountHealthy(), len(s.PD.Members), s.PD.Leader)
	case !bootstrap.IsBootstrapped(g, s):
		return verdict.Refuse("PD has not bootstrapped its cluster yet")
	}
	return verdict.Allow()
}

// HasLeft reports whether PD has let the member of an Instance go, as far as PD's answer
// is something to act on. It votes no more, whatever its pod does, and its data is
// of no use: PD never takes such a member back.
func HasLeft(g *v1alpha1.PDGroup, s observation.Snapshot, i *v1alpha1.Instance) bool {
	_, listed := FindMember(g, s, i)
	return MayTrustAnswer(g, s).IsAllowed() && !listed && i.Status.Member != nil
}

// CountJoining counts the Instances that have not joined yet and may do so at any
// moment: from then on they count for what a majority is.
func CountJoining(g *v1alpha1.PDGroup, s observation.Snapshot) int {
	n := 0
	for _, i := range s.Instances {
		if _, listed := FindMember(g, s, i); !listed && i.DeletionTimestamp == nil && i.Status.Member == nil && workload.IsOwned(g, i) {
			n++
		}
	}
	return n
}

// JoinAfter is for how long all members must have been healthy before another
// one is started. The etcd in PD refuses a member with "unhealthy cluster" unless the
// member that it asks has been connected to all others for 5 s (HealthInterval in
// etcdserver, with the check of reconfigurations that is on by default), and the PD
// that is refused ends. Conditions have whole seconds, and members connect after they
// have answered for the first time: that is the rest.
const JoinAfter = 7 * time.Second

// StartLimit lets all members of a new cluster start together. Later members join one
// at a time, each when all before it are healthy and have been for a while, and only
// if a majority stands firm with the new one counted in: every join changes what a
// majority is.
func StartLimit(g *v1alpha1.PDGroup, s observation.Snapshot) (int, string) {
	if !bootstrap.IsBootstrapped(g, s) {
		return firstStartLimit(g, s)
	}
	none := func(format string, args ...any) (int, string) {
		return 0, "members join one at a time: waiting for " + fmt.Sprintf(format, args...)
	}
	if !bootstrap.OwnPD(g, s).IsAllowed() {
		return none("this group's own PD to answer")
	}
	if back := len(ReturningSlots(g, s)); back > 0 {
		// PD knows them: starting them again changes no majority, and may be what
		// PD needs for one.
		return back, "members that PD lists start again first"
	}
	switch known := MayTrustAnswer(g, s).IsAllowed(); {
	case !known && len(s.Instances) == 0:
		return none("PD, which has no Instance and no claim left: restore the claims of its members (%s and so on) with their labels, or delete the PDGroup and recreate it for an empty cluster: kubectl -n %s delete pdgroup %s",
			bootstrap.DataClaim(g, names.Instance(g.Name, 0)), g.Namespace, g.Name)
	case !known:
		return none("PD to have a quorum")
	}
	if left := ListAbandoned(g, s); len(left) > 0 {
		return none("member %s, which has no Instance, to leave PD", cmp.Or(left[0].Name, left[0].PeerURL))
	}
	for _, i := range s.Instances {
		if s.Lease.IsHeldBy(i) {
			return none("Instance %s to be done", i.Name)
		}
		if HasLeft(g, s, i) {
			continue // its pod may take forever to stop
		}
		m, listed := FindMember(g, s, i)
		if listed && !m.Healthy && (i.DeletionTimestamp != nil || i.Spec.Retire) {
			return none("member %s to leave PD", i.Name)
		}
		if !listed || m.Name == "" || !m.Healthy || !member.IsReady(i) && !member.LosesClaim(i) {
			return none("Instance %s", i.Name)
		}
	}
	// etcd counts all that are listed, and those that are moved away from have no Instance.
	for _, m := range s.PD.Members {
		if !m.Healthy {
			return none("member %s, which is not healthy: PD's etcd accepts another member only when all its members are connected", cmp.Or(m.Name, m.PeerURL))
		}
	}
	if name := findRecentlyHealthy(g, s); name != "" {
		return none("member %s to have been healthy for %s: PD's etcd accepts another member only then", name, JoinAfter)
	}
	n := len(s.PD.Members)
	// Where one more makes the majority no larger, it may be what fixes PD.
	if shaky, name := listUnsteady(g, s); n > 1 && pd.Majority(n+1) > pd.Majority(n) && s.PD.CountHealthy(shaky...) < pd.Majority(n+1) {
		return none("Instance %s, whose member PD calls healthy and whose pod is not ready, is being stopped, or stops again and again: with one more %d are a majority: kubectl -n %s describe instance %s; if it does not recover, replace it: kubectl -n %s delete instance %s",
			name, pd.Majority(n+1), g.Namespace, name, g.Namespace, name)
	}
	return 1, "members join one at a time"
}

// listUnsteady returns the members that PD calls healthy and that may stop at any moment,
// and the name of one. Until the one that joins has started, all others that a majority
// needs have to go on.
func listUnsteady(g *v1alpha1.PDGroup, s observation.Snapshot) (ids []string, name string) {
	for _, i := range s.Instances {
		if m, listed := FindMember(g, s, i); listed && m.Healthy && member.PodStateOf(i) != member.PodReady {
			ids, name = append(ids, m.ID), i.Name
		}
	}
	return ids, name
}

// findRecentlyHealthy names the Instance whose member has become healthy last, if that was
// too short a time ago for another one to be added; empty if it was not. A single
// member has no other to be connected to.
func findRecentlyHealthy(g *v1alpha1.PDGroup, s observation.Snapshot) string {
	name, last := "", time.Time{}
	if len(s.PD.Members) < 2 {
		return ""
	}
	for _, i := range s.Instances {
		if _, listed := FindMember(g, s, i); listed && HealthySince(i).After(last) {
			name, last = i.Name, HealthySince(i)
		}
	}
	if s.Now.Sub(last) >= JoinAfter {
		return ""
	}
	return name
}

// HealthySince returns since when an Instance's member may have been healthy without a
// break: a process that is started again between two polls shows in its pod alone.
func HealthySince(i *v1alpha1.Instance) time.Time {
	since := time.Time{}
	for _, kind := range []string{v1alpha1.ConditionHealthy, v1alpha1.ConditionPodReady} {
		if c := meta.FindStatusCondition(i.Status.Conditions, kind); c != nil && c.LastTransitionTime.After(since) {
			since = c.LastTransitionTime.Time
		}
	}
	return since
}

// firstStartLimit lets the members start of which one may bootstrap the cluster, or that have
// bootstrapped it before: the others join it.
func firstStartLimit(g *v1alpha1.PDGroup, s observation.Snapshot) (int, string) {
	if lost := bootstrap.CheckVanished(g, s); lost.Kind != step.KindDone {
		return 0, lost.Message
	}
	if left := bootstrap.LeftByAnother(g, s); left != "" {
		return 0, fmt.Sprintf("waiting for Instance %s of a deleted PDGroup: the claims that it leaves decide which members bootstrap the cluster", left)
	}
	n := 0
	var starts []string
	for _, slot := range bootstrap.StartingSlots(g, s) {
		name := names.Instance(g.Name, slot)
		starts = append(starts, name)
		if s.Instance(name) == nil {
			n++
		}
	}
	if len(starts) == 0 && len(s.Instances) > 0 {
		return 0, fmt.Sprintf("not bootstrapping: Instance %s was configured to join an earlier cluster, and no claim of its members is left: restore them (%s and so on) with their labels, "+
			"or delete the PDGroup and recreate it for an empty cluster: kubectl -n %s delete pdgroup %s", s.Instances[0].Name, bootstrap.DataClaim(g, names.Instance(g.Name, 0)), g.Namespace, g.Name)
	}
	return n, fmt.Sprintf("claims of former members are left, and members with a claim start first (%s): the others join once PD has reported its cluster ID", strings.Join(starts, ", "))
}

// CountExtra returns how many members more than wanted are started because claims of
// former ones are left: PD may need them for a majority, and they leave it when
// there is one. So does a member that PD lists and that has lost its Instance when there
// are enough: it would vote forever, and never run.
func CountExtra(g *v1alpha1.PDGroup, s observation.Snapshot) int32 {
	members := len(ReturningSlots(g, s))
	if members == 0 {
		return 0
	}
	if bootstrap.IsBootstrapped(g, s) {
		members += len(s.Instances) // before, those that start are among the slots
	}
	return max(0, int32(members)-g.GetReplicas()) //nolint:gosec // a few
}

// PodName returns the name of the pod of a member, which is that of its Instance;
// empty if the member is not one of this group's, such as one that the data is
// moved from.
func PodName(g *v1alpha1.PDGroup, m pd.Member) string {
	pod := m.Name
	if pod == "" {
		pod, _ = names.PodOfHost(m.PeerURL, g.Name, g.Namespace)
	}
	if _, ours := names.Slot(g.Name, pod); !ours {
		return ""
	}
	return pod
}

// ListAbandoned returns the group's members that PD lists and that have no Instance.
func ListAbandoned(g *v1alpha1.PDGroup, s observation.Snapshot) []pd.Member {
	return slices.DeleteFunc(slices.Clone(s.PD.Members), func(m pd.Member) bool {
		pod := PodName(g, m)
		return pod == "" || s.Instance(pod) != nil
	})
}

// ReturningSlots returns the slots of members that PD lists, or listed last, whose
// data is still there and that have no Instance. If it is unknown which members PD lists,
// these are all whose data is there: no cluster is bootstrapped any more.
func ReturningSlots(g *v1alpha1.PDGroup, s observation.Snapshot) []int32 {
	if !bootstrap.IsBootstrapped(g, s) {
		return bootstrap.StartingSlots(g, s)
	}
	listed, data := s.PD.Members, bootstrap.SlotsWithData(g, s)
	if !bootstrap.IsPDUsable(g, s) {
		listed = nil
		for _, m := range g.Status.Members {
			listed = append(listed, pd.Member{Name: m.Name})
		}
		if len(listed) == 0 {
			for _, slot := range data {
				listed = append(listed, pd.Member{Name: names.Instance(g.Name, slot)})
			}
		}
	}
	var out []int32
	for _, m := range listed {
		slot, ours := names.Slot(g.Name, m.Name)
		if ours && s.Instance(m.Name) == nil && slices.Contains(data, slot) {
			out = append(out, slot)
		}
	}
	return out
}

// FindOrphan returns a member that nothing will ever start again, if it may leave PD:
// it has no Instance and no data, is not healthy, and the others have a majority
// without it.
func FindOrphan(g *v1alpha1.PDGroup, s observation.Snapshot) pd.Member {
	if !MayTrustAnswer(g, s).IsAllowed() || g.DeletionTimestamp != nil || g.Spec.Suspended {
		return pd.Member{}
	}
	back := ReturningSlots(g, s)
	for _, m := range ListAbandoned(g, s) {
		slot, _ := names.Slot(g.Name, m.Name)
		if !m.Healthy && (m.Name == "" || !slices.Contains(back, slot)) && s.PD.CountHealthy() >= pd.Majority(len(s.PD.Members)-1) {
			return m
		}
	}
	return pd.Member{}
}
