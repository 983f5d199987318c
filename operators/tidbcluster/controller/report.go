package controller

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/conditions"
	"github.com/tidb-groups/tidb-groups/shared/gate"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// maxGroups is how many groups status has room for.
const maxGroups = 64

// report computes the status of a TidbCluster. It is pure.
func report(c *v1alpha1.TidbCluster, s snapshot, p clusterPlan, outcome step.Outcome, now time.Time) (v1alpha1.TidbClusterStatus, *conditions.Set) {
	set := conditions.New(c.Status.Conditions, c.Generation, now)
	status := v1alpha1.TidbClusterStatus{ObservedGeneration: c.Generation}
	wanted, serving, ready := groups(c), true, 0
	for _, g := range wanted {
		live := s.groups[keyOf(g)]
		if live != nil && !ours(c, live) {
			live = nil
		}
		summary := summarize(g, live)
		status.Groups = append(status.Groups, summary)
		switch {
		case summary.Ready == metav1.ConditionTrue:
			ready++
		case summary.Replicas > 0, live == nil && scaledByOthers(g):
			serving = false
		}
		switch live := live.(type) {
		case *v1alpha1.PDGroup:
			status.ClusterID = live.Status.ClusterID
		case *v1alpha1.TiDBGroup:
			if status.Endpoint == "" {
				status.Endpoint = live.Status.Endpoint
			}
		}
	}
	entries := len(status.Groups)
	for _, g := range removed(c, s, wanted) {
		if len(status.Groups) == maxGroups {
			break
		}
		summary := summarize(g, g)
		summary.Reason = v1alpha1.ReasonEntryRemoved
		if g.GetDeletionTimestamp() != nil {
			summary.Reason = v1alpha1.ReasonDeleting
		}
		status.Groups = append(status.Groups, summary)
	}
	set.Finish(conditions.Verdict{
		Serving: serving && (!c.Spec.Suspended || c.Spec.Paused),
		Summary: fmt.Sprintf("%d of %d groups are Ready", ready, entries),
		Outcome: step.Worst(outcome, p.Outcome),
		Paused:  c.Spec.Paused, Suspended: c.Spec.Suspended && !c.Spec.Paused,
	})
	status.Conditions = set.List()
	return status, set
}

// summarize mirrors one group; live is nil while there is none.
func summarize(wanted, live v1alpha1.Group) v1alpha1.GroupSummary {
	out := v1alpha1.GroupSummary{
		Name: wanted.GetName(), Kind: wanted.GroupKind(), Replicas: wanted.GetReplicas(), Ready: metav1.ConditionUnknown,
	}
	if live == nil {
		return out
	}
	if scaledByOthers(wanted) {
		out.Replicas = live.GetReplicas()
	}
	out.ReadyReplicas = live.GetGroupStatus().ReadyReplicas
	if ready := gate.Current(live.GetGroupStatus().Conditions, live.GetGeneration(), v1alpha1.ConditionReady); ready != nil {
		out.Ready, out.Reason = ready.Status, ready.Reason
	}
	return out
}
