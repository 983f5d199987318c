package controller

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/conditions"
	"github.com/tidb-groups/tidb-groups/shared/gate"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// maxGroups is how many groups status has room for: those of the longest spec, and some more.
const maxGroups = 96

// reportStatus computes the status of a TidbCluster. It is pure.
func reportStatus(c *v1alpha1.TidbCluster, s snapshot, p clusterPlan, outcome step.Outcome, now time.Time) (v1alpha1.TidbClusterStatus, *conditions.Set) {
	set := conditions.New(c.Status.Conditions, c.Generation, now)
	status := v1alpha1.TidbClusterStatus{ObservedGeneration: c.Generation}
	wanted, serving, ready, unready := renderGroups(c), true, 0, step.Done()
	for _, g := range wanted {
		live := s.groups[keyOf(g)]
		if live != nil && !ownsGroup(c, live) {
			live = nil
		}
		summary := summarizeGroup(g, live)
		status.Groups = append(status.Groups, summary)
		switch {
		case summary.Ready == metav1.ConditionTrue:
			ready++
		case summary.Replicas > 0, live == nil && isScaledByOthers(g):
			serving = false
			if unready.Reason == "" {
				unready = whyUnready(g, live)
			}
		}
		if pd, ok := live.(*v1alpha1.PDGroup); ok {
			status.ClusterID = pd.Status.ClusterID
		}
	}
	status.Endpoint, status.RestoredAt = findEndpoint(c, s, wanted), p.Bootstrap.RestoredAt
	if p.Bootstrap.Closed && serving {
		serving, unready = false, p.Bootstrap.Outcome
	}
	entries := len(status.Groups)
	for _, g := range listRemovedGroups(c, s, wanted) {
		if len(status.Groups) == maxGroups {
			break
		}
		summary := summarizeGroup(g, g)
		summary.Reason = v1alpha1.ReasonEntryRemoved
		if g.GetDeletionTimestamp() != nil {
			summary.Reason = v1alpha1.ReasonDeleting
		}
		status.Groups = append(status.Groups, summary)
	}
	noteReason, note := findNote(p.Apply)
	set.Finish(conditions.Verdict{
		NoteReason: noteReason, Note: note,
		Unready: unready, Unpause: unsetCommand(c, "paused"), Resume: unsetCommand(c, "suspended"),
		Serving: serving && (!c.Spec.Suspended || c.Spec.Paused),
		Summary: fmt.Sprintf("%d of %d groups are Ready", ready, entries),
		Outcome: step.Worst(outcome, p.Outcome),
		Paused:  c.Spec.Paused && c.DeletionTimestamp == nil, Suspended: c.Spec.Suspended && !c.Spec.Paused && c.DeletionTimestamp == nil,
	})
	status.Conditions = set.List()
	status.Reason, status.Message = set.Headline()
	status.Updated, status.Version = summarizeProgress(c, s)
	return status, set
}

// findEndpoint is the address that clients connect to: of the last kind in the component table
// that has one, the first group's. Proxies come after the servers, and are what clients use if
// there are any.
func findEndpoint(c *v1alpha1.TidbCluster, s snapshot, wanted []v1alpha1.Group) string {
	out, kind := "", ""
	for _, g := range wanted {
		live, ok := s.groups[keyOf(g)].(v1alpha1.ClientGroup)
		if ok && ownsGroup(c, live) && (out == "" || kind != live.GroupKind()) && live.GetEndpoint() != "" {
			out, kind = live.GetEndpoint(), live.GroupKind()
		}
	}
	return out
}

// unsetCommand is the command that sets a flag of the cluster's own spec to false.
func unsetCommand(c *v1alpha1.TidbCluster, flag string) string {
	return fmt.Sprintf("kubectl -n %s patch tidbcluster %s --type=merge -p '{\"spec\":{\"%s\":false}}'", c.Namespace, c.Name, flag)
}

// whyUnready passes on why a group does not serve. It may be another one than the first
// that is not what its spec asks for.
func whyUnready(wanted, live v1alpha1.Group) step.Outcome {
	name := wanted.GroupKind() + " " + wanted.GetName()
	if live == nil {
		return step.Outcome{} // the plan's outcome says more: it is being created
	}
	ready := meta.FindStatusCondition(live.GetGroupStatus().Conditions, v1alpha1.ConditionReady)
	if ready == nil {
		return step.Outcome{}
	}
	return step.Wait("groups", waitDeadline, ready.Reason, name+": "+ready.Message)
}

// findNote returns what is unusual about the first such group that is what its spec asks for,
// such as a store without leaders; empty for nothing.
func findNote(changes []groupChange) (reason, note string) {
	for _, change := range changes {
		if change.live == nil {
			continue
		}
		c := gate.FindCurrentCondition(change.live.GetGroupStatus().Conditions, change.live.GetGeneration(), v1alpha1.ConditionUpToDate)
		if c != nil && c.Status == metav1.ConditionTrue && c.Reason != v1alpha1.ReasonUpToDate {
			return c.Reason, change.desired.GroupKind() + " " + change.desired.GetName() + ": " + c.Message
		}
	}
	return "", ""
}

// summarizeProgress returns how many Instances of all groups have the revision of their spec, out of
// all that exist or are wanted, as in 3/9, and the versions that the groups run.
func summarizeProgress(c *v1alpha1.TidbCluster, s snapshot) (updated, version string) {
	done, all, versions := int32(0), int32(0), []string(nil)
	for _, g := range renderGroups(c) {
		live := s.groups[keyOf(g)]
		if live == nil || !ownsGroup(c, live) {
			all += g.GetReplicas()
			continue
		}
		if !isScaledByOthers(g) {
			all += max(g.GetReplicas(), live.GetGroupStatus().Replicas)
		} else {
			all += max(live.GetReplicas(), live.GetGroupStatus().Replicas)
		}
		// What a group counts at an older spec may not be what is asked for now.
		if live.GetGroupStatus().ObservedGeneration == live.GetGeneration() {
			done += live.GetGroupStatus().UpdatedReplicas
		}
		if info, _ := v1alpha1.LookupComponent(g.GroupKind()); info.OwnReleases {
			continue
		}
		if v := live.GetGroupStatus().Version; v != "" && !slices.Contains(versions, v) {
			versions = append(versions, v)
		}
	}
	slices.Sort(versions)
	return fmt.Sprintf("%d/%d", done, all), strings.Join(versions, ",")
}

// summarizeGroup mirrors one group; live is nil while there is none.
func summarizeGroup(wanted, live v1alpha1.Group) v1alpha1.GroupSummary {
	out := v1alpha1.GroupSummary{
		Name: wanted.GetName(), Kind: wanted.GroupKind(), Replicas: wanted.GetReplicas(), Ready: metav1.ConditionUnknown,
	}
	if live == nil {
		return out
	}
	if isScaledByOthers(wanted) {
		out.Replicas = live.GetReplicas()
	}
	out.ReadyReplicas = live.GetGroupStatus().ReadyReplicas
	// What a group last said stands until it has looked at its new spec: an edit by itself
	// stops nothing. UpToDate says that it has not.
	if ready := meta.FindStatusCondition(live.GetGroupStatus().Conditions, v1alpha1.ConditionReady); ready != nil {
		out.Ready, out.Reason = ready.Status, ready.Reason
	}
	return out
}
