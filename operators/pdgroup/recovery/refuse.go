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
	// electionPatience is how long PD must have been without a quorum: an election
	// takes some seconds, and so does a restart.
	electionPatience = 30 * time.Second
	// patience is after how long it is looked again at what should wake the group.
	patience = time.Minute
)

// refuse says why a request is not obeyed; Done if it is. Nothing is touched for
// one that is refused.
func refuse(g *v1alpha1.PDGroup, s observation.Snapshot, request string) step.Outcome {
	survivor, clusterID, ok := parse(request)
	switch {
	case !ok:
		return never("%q names no member and cluster: %s", request, example(g))
	case g.Status.ClusterID == "":
		return never("PD has not bootstrapped a cluster yet, and there is nothing to recover: %s", withdraw(g))
	case clusterID != g.Status.ClusterID:
		return never("%q is for the cluster of ID %s, and this one's is %s: if this one is meant: %s", request, clusterID, g.Status.ClusterID, give(g, survivor))
	case g.Spec.Paused:
		return never("spec.paused is set, and nothing is done: %s", origin.OfGroup(g).Set("paused", false))
	case g.Spec.Suspended:
		return never("spec.suspended is set: %s", origin.OfGroup(g).Set("suspended", false))
	case !bootstrap.OwnPD(g, s).IsAllowed() && !active(g.Status.Recovery):
		return step.Stall(v1alpha1.ReasonRecoveryRefused, bootstrap.OwnPD(g, s).Reason())
	}
	for _, check := range []step.Outcome{quorum(g, s), unfit(g, s, survivor), served(g, s)} {
		if check.Kind != step.KindDone {
			return check
		}
	}
	return step.Done()
}

// quorum refuses while PD has a quorum, or might get one by itself.
func quorum(g *v1alpha1.PDGroup, s observation.Snapshot) step.Outcome {
	voters := voters(g)
	var running []string
	for _, name := range voters {
		if i := s.Instance(name); i != nil && meta.IsStatusConditionTrue(i.Status.Conditions, v1alpha1.ConditionPodReady) {
			running = append(running, name)
		}
	}
	lost := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionQuorumHealthy)
	switch {
	case quorate(g, s.PD), lost == nil, lost.Status == metav1.ConditionTrue:
		return never("PD has a quorum, and there is nothing to recover: %s", withdraw(g))
	case len(voters) <= 1:
		return never("PD has a single member, so there is no other to recover from; repair it: kubectl -n %s describe instance %s", g.Namespace, strings.Join(voters, ""))
	case len(running) >= pd.Majority(len(voters)):
		return never("members %s run, and are a majority of %d: fix what keeps them apart: kubectl -n %s logs %s", strings.Join(running, ", "), len(voters), g.Namespace, running[0])
	}
	if left := electionPatience - s.Now.Sub(lost.LastTransitionTime.Time); left > 0 {
		return step.Wait("PD", left+time.Second, v1alpha1.ReasonRecoveryRefused, fmt.Sprintf("not yet: PD must have been without a quorum for %s", electionPatience))
	}
	return step.Done()
}

// quorate reports whether the group's own PD has a quorum.
func quorate(g *v1alpha1.PDGroup, view pd.View) bool {
	return view.HasQuorum() && view.ClusterID == g.Status.ClusterID
}

// voters returns the names of PD's members, as far as they are known: those that
// it listed last, and those that a recovery is about.
func voters(g *v1alpha1.PDGroup) []string {
	var out []string
	for _, m := range g.Status.Members {
		out = append(out, m.Name)
	}
	if r := g.Status.Recovery; active(r) {
		for _, m := range append(slices.Clone(r.Discarded), r.Survivor) {
			if !slices.Contains(out, m.Name) {
				out = append(out, m.Name)
			}
		}
	}
	return out
}

// unfit refuses a survivor that PD cannot be rebuilt from.
func unfit(g *v1alpha1.PDGroup, s observation.Snapshot, name string) step.Outcome {
	i := s.Instance(name)
	switch {
	case i == nil:
		return never("there is no Instance %s: name another one: %s", name, example(g))
	case i.DeletionTimestamp != nil, i.Spec.Retire:
		return never("Instance %s is being removed: name another one: %s", name, example(g))
	case !slices.Contains(voters(g), name):
		return never("PD did not list member %s last, which may have joined nothing: name another one: %s", name, example(g))
	}
	for _, other := range s.Instances {
		if !workload.IsOwned(g, other) {
			return step.Wait("Instance", patience, v1alpha1.ReasonRecoveryRefused, fmt.Sprintf("Instance %s of a group that is gone must go first: kubectl -n %s describe instance %s", other.Name, g.Namespace, other.Name))
		}
	}
	for _, v := range i.Status.Volumes {
		claimed := slices.ContainsFunc(s.Claims[name], func(c metav1.ObjectMeta) bool { return c.UID == v.ClaimUID && c.DeletionTimestamp == nil })
		if !claimed || v.Phase != "Bound" {
			return never("claim %s of Instance %s is not there as the member left it: name another one, or restore it: kubectl -n %s describe instance %s", v.ClaimName, name, g.Namespace, name)
		}
	}
	pod := meta.FindStatusCondition(i.Status.Conditions, v1alpha1.ConditionPodReady)
	if len(i.Status.Volumes) == 0 || member.IsClaimLost(i) || pod == nil || pod.Status != metav1.ConditionTrue && !slices.Contains(startable(), pod.Reason) {
		return never("the pod of Instance %s cannot be started, and PD not with it: name another one, or: kubectl -n %s describe instance %s", name, g.Namespace, name)
	}
	return step.Done()
}

// startable lists why a pod may not be Ready that can be started: without a
// quorum PD does not listen, and ends after a while.
func startable() []string {
	return []string{
		v1alpha1.ReasonPodNotReady, v1alpha1.ReasonPodMissing, v1alpha1.ReasonPodPending, v1alpha1.ReasonPodFailed,
		v1alpha1.ReasonPodTerminating, v1alpha1.ReasonContainerCrashing, v1alpha1.ReasonSuspended, v1alpha1.ReasonNodeUnreachable,
	}
}

// never refuses until a user does something.
func never(format string, args ...any) step.Outcome {
	return step.Stall(v1alpha1.ReasonRecoveryRefused, "annotation "+v1alpha1.AnnotationRecoverQuorum+" is not obeyed: "+fmt.Sprintf(format, args...))
}

// give is the command that asks for PD to be rebuilt from a member.
func give(g *v1alpha1.PDGroup, survivor string) string {
	return fmt.Sprintf("kubectl -n %s annotate pdgroup %s --overwrite %s=%s/%s", g.Namespace, g.Name, v1alpha1.AnnotationRecoverQuorum, survivor, g.Status.ClusterID)
}

func example(g *v1alpha1.PDGroup) string { return give(g, "INSTANCE") }

// withdraw is the command that takes a request back.
func withdraw(g *v1alpha1.PDGroup) string {
	return fmt.Sprintf("kubectl -n %s annotate pdgroup %s %s-", g.Namespace, g.Name, v1alpha1.AnnotationRecoverQuorum)
}
