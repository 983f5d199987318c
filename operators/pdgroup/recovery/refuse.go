package recovery

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/pdgroup/bootstrap"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/origin"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/workload"
)

const (
	// electionTimeout is how long PD must have been without a quorum: an election
	// takes some seconds, and so does a restart.
	electionTimeout = 30 * time.Second
	// recheckPeriod is after how long it is looked again at what should wake the group.
	recheckPeriod = time.Minute
)

// checkRequest says why a request is not obeyed; Done if it is. Nothing is touched for
// one that is refused.
func checkRequest(g *v1alpha1.PDGroup, s observation.Snapshot, request string) step.Outcome {
	survivor, clusterID, ok := parseRequest(request)
	switch {
	case !ok:
		return stallForUser("%q is not <Instance>/<cluster ID>: %s", request, exampleCommand(g))
	case g.Status.ClusterID == "":
		return stallForUser("PD has not bootstrapped a cluster yet, and there is nothing to recover: %s", withdrawCommand(g))
	case clusterID != g.Status.ClusterID:
		return stallForUser("%q is for the cluster of ID %s, and this one's is %s: if this one is meant: %s", request, clusterID, g.Status.ClusterID, requestCommand(g, survivor))
	case g.Spec.Paused:
		return stallForUser("spec.paused is set, and nothing is done: %s", origin.OfGroup(g).Set("paused", false))
	case g.Spec.Suspended:
		return stallForUser("spec.suspended is set: %s", origin.OfGroup(g).Set("suspended", false))
	case !bootstrap.OwnPD(g, s).IsAllowed() && !isUnderWay(g.Status.Recovery):
		return step.Stall(v1alpha1.ReasonRecoveryRefused, bootstrap.OwnPD(g, s).Reason())
	}
	for _, check := range []step.Outcome{checkNoQuorum(g, s), checkSurvivor(g, s, survivor), checkServed(g, s)} {
		if check.Kind != step.KindDone {
			return check
		}
	}
	return step.Done()
}

// checkObeyed says of a request that was obeyed that it is not obeyed once more; Done while there
// is nothing that it could ask for. A user who sets it again changes nothing.
func checkObeyed(g *v1alpha1.PDGroup, s observation.Snapshot, request string) step.Outcome {
	if checkRequest(g, s, request).Kind != step.KindDone {
		return step.Done()
	}
	survivor, _, _ := parseRequest(request)
	return stallForUser("PD was rebuilt from Instance %s for it before: to rebuild it once more: %s, then %s", survivor, withdrawCommand(g), requestCommand(g, survivor))
}

// checkNoQuorum refuses while PD has a quorum, or might get one by itself.
func checkNoQuorum(g *v1alpha1.PDGroup, s observation.Snapshot) step.Outcome {
	voters := listVoters(g)
	var running []string
	for _, name := range voters {
		if i := s.Instance(name); i != nil && meta.IsStatusConditionTrue(i.Status.Conditions, v1alpha1.ConditionPodReady) {
			running = append(running, name)
		}
	}
	lost := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionQuorumHealthy)
	switch {
	case hasQuorum(g, s.PD), lost == nil, lost.Status == metav1.ConditionTrue:
		return stallForUser("PD has a quorum, and there is nothing to recover: %s", withdrawCommand(g))
	case len(voters) <= 1:
		return stallForUser("PD has a single member, so there is no other to recover from; repair it: kubectl -n %s describe instance %s", g.Namespace, strings.Join(voters, ""))
	case len(running) >= pd.Majority(len(voters)):
		return stallForUser("members %s run, and are a majority of %d: fix what keeps them apart: kubectl -n %s logs %s", strings.Join(running, ", "), len(voters), g.Namespace, running[0])
	}
	left := electionTimeout - s.Now.Sub(lost.LastTransitionTime.Time)
	if lost.Reason == v1alpha1.ReasonSuspended {
		left = electionTimeout // it is being started again
	}
	if left > 0 {
		return step.Wait("PD", left+time.Second, v1alpha1.ReasonRecoveryRefused, fmt.Sprintf("not yet: PD must have been without a quorum for %s", electionTimeout))
	}
	return step.Done()
}

// hasQuorum reports whether the group's own PD has a quorum.
func hasQuorum(g *v1alpha1.PDGroup, view pd.View) bool {
	return view.HasQuorum() && view.ClusterID == g.Status.ClusterID
}

// listVoters returns the names of PD's members, as far as they are known: those that
// it listed last, and those that a recovery is about.
func listVoters(g *v1alpha1.PDGroup) []string {
	var out []string
	for _, m := range g.Status.Members {
		out = append(out, m.Name)
	}
	if r := g.Status.Recovery; isUnderWay(r) {
		for _, m := range append(slices.Clone(r.Discarded), r.Survivor) {
			if !slices.Contains(out, m.Name) {
				out = append(out, m.Name)
			}
		}
	}
	return out
}

// checkSurvivor refuses a survivor that PD cannot be rebuilt from.
func checkSurvivor(g *v1alpha1.PDGroup, s observation.Snapshot, name string) step.Outcome {
	i := s.Instance(name)
	switch {
	case i == nil:
		return stallForUser("there is no Instance %s: name another one: %s", name, exampleCommand(g))
	case i.DeletionTimestamp != nil, i.Spec.Retire:
		return stallForUser("Instance %s is being removed: name another one: %s", name, exampleCommand(g))
	case !slices.Contains(listVoters(g), name):
		return stallForUser("member %s was not in PD's last member list, so it may never have joined: name another one: %s", name, exampleCommand(g))
	}
	for _, other := range s.Instances {
		if !workload.IsOwned(g, other) {
			return step.Wait("Instance", recheckPeriod, v1alpha1.ReasonRecoveryRefused, fmt.Sprintf("Instance %s of a group that is gone must go first: kubectl -n %s describe instance %s", other.Name, g.Namespace, other.Name))
		}
	}
	for _, v := range i.Status.Volumes {
		claimed := slices.ContainsFunc(s.Claims[name], func(c metav1.ObjectMeta) bool { return c.UID == v.ClaimUID && c.DeletionTimestamp == nil })
		if !claimed || v.Phase != "Bound" {
			return stallForUser("claim %s of Instance %s is missing, being deleted, not Bound, or not the one that the member used: name another one, or restore it: kubectl -n %s describe instance %s", v.ClaimName, name, g.Namespace, name)
		}
	}
	pod := meta.FindStatusCondition(i.Status.Conditions, v1alpha1.ConditionPodReady)
	if len(i.Status.Volumes) == 0 || member.IsClaimLost(i) || pod == nil || pod.Status != metav1.ConditionTrue && !slices.Contains(startableReasons(), pod.Reason) {
		return stallForUser("the pod of Instance %s cannot start, so PD cannot be rebuilt from it: name another one, or: kubectl -n %s describe instance %s", name, g.Namespace, name)
	}
	return step.Done()
}

// startableReasons lists why a pod may not be Ready that can be started: without a
// quorum PD does not listen, and ends after a while.
func startableReasons() []string {
	return []string{
		v1alpha1.ReasonPodNotReady, v1alpha1.ReasonPodMissing, v1alpha1.ReasonPodPending, v1alpha1.ReasonPodFailed,
		v1alpha1.ReasonPodTerminating, v1alpha1.ReasonContainerCrashing, v1alpha1.ReasonSuspended, v1alpha1.ReasonNodeUnreachable,
	}
}

// stallForUser refuses until a user does something.
func stallForUser(format string, args ...any) step.Outcome {
	return step.Stall(v1alpha1.ReasonRecoveryRefused, "annotation "+v1alpha1.AnnotationRecoverQuorum+" is not obeyed: "+fmt.Sprintf(format, args...))
}

// requestCommand is the command that asks for PD to be rebuilt from a member.
func requestCommand(g *v1alpha1.PDGroup, survivor string) string {
	return fmt.Sprintf("kubectl -n %s annotate pdgroup %s --overwrite %s=%s/%s", g.Namespace, g.Name, v1alpha1.AnnotationRecoverQuorum, survivor, g.Status.ClusterID)
}

func exampleCommand(g *v1alpha1.PDGroup) string { return requestCommand(g, "INSTANCE") }

// withdrawCommand is the command that takes a request back.
func withdrawCommand(g *v1alpha1.PDGroup) string {
	return fmt.Sprintf("kubectl -n %s annotate pdgroup %s %s-", g.Namespace, g.Name, v1alpha1.AnnotationRecoverQuorum)
}
