package bootstrap

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/gate"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// deadline is after how long an object is read even without an event of its watch.
const deadline = time.Minute

// Seen is what a plan is made from.
type Seen struct {
	// Restore of the name that the cluster's has, whatever owns it; nil if there is none. Overdue
	// says that its operator should have looked at it by now.
	Restore *v1alpha1.Restore
	Overdue bool
	// Through is the first TiDBGroup of the cluster's own, which the data are written through;
	// empty while there is none.
	Through string
	// Groupless says that the TiDBGroup which the Restore names is gone.
	Groupless bool
	// Open is a group of the cluster that lets clients in; empty if none does.
	Open string
}

// Plan is what to do about spec.bootstrapFrom.
type Plan struct {
	// Closed says that no group may let clients in.
	Closed bool
	// Make is the Restore to apply, over Live, which is nil while there is none. Remove is the
	// one to delete.
	Make, Live, Remove *v1alpha1.Restore
	// RestoredAt is when the data were there; nil if they are not, or are not asked for.
	RestoredAt *metav1.Time
	// Outcome is why the data are not there; Done if they are, or are not asked for.
	Outcome step.Outcome
}

// Name is that of the Restore of a cluster.
func Name(cluster string) string { return cluster + "-bootstrap" }

// MakePlan decides what to do. What is done stands in status, and nothing else is looked at then.
// Until it does, a Restore that is complete says so, and so does a group that lets clients in:
// whatever was lost meanwhile, clients are not kept out again, and nothing is restored over
// what they have written.
func MakePlan(c *v1alpha1.TidbCluster, seen Seen) Plan {
	mine := seen.Restore != nil && metav1.IsControlledBy(seen.Restore, c)
	switch from := c.Spec.BootstrapFrom; {
	case c.Status.RestoredAt != nil:
		return Plan{RestoredAt: c.Status.RestoredAt, Outcome: step.Done()}
	case mine && isComplete(seen.Restore):
		at := ptr.Deref(seen.Restore.Status.CompletionTime, seen.Restore.CreationTimestamp)
		return Plan{RestoredAt: &at, Outcome: step.Done()}
	case from == nil && mine:
		return giveUp(c, seen.Restore)
	case from == nil:
		return Plan{Outcome: step.Done()}
	case seen.Open != "":
		return Plan{Outcome: stallForUser(v1alpha1.ReasonInvalidSpec, fmt.Sprintf("spec.bootstrapFrom: %s lets clients in already, and nothing is restored into a cluster that they may have written to: remove it: %s", seen.Open, skipRestoreCommand(c)))}
	case seen.Restore != nil && !mine:
		o := AwaitLeaving(c, v1alpha1.KindRestore, seen.Restore)
		if o.Kind == step.KindDone {
			o = stallForUser(v1alpha1.ReasonNameConflict, fmt.Sprintf("Restore %s exists and was not made by this TidbCluster: delete it: kubectl -n %s delete restore %s", seen.Restore.Name, c.Namespace, seen.Restore.Name))
		}
		return Plan{Closed: true, Outcome: o}
	default:
		return planRestore(c, seen)
	}
}

// planRestore is a cluster whose data are not there yet.
func planRestore(c *v1alpha1.TidbCluster, seen Seen) Plan {
	p := Plan{Closed: true, Live: seen.Restore, Outcome: restoreOutcome(c, seen)}
	switch {
	case c.Spec.Paused, seen.Restore != nil && seen.Restore.DeletionTimestamp != nil:
	case seen.Groupless && seen.Through != "" && isWaiting(seen.Restore):
		p.Remove = seen.Restore
		p.Outcome = waitForRestore(v1alpha1.ReasonDeleting, fmt.Sprintf("Restore %s is made again, because TiDBGroup %s, which it names, is gone", seen.Restore.Name, seen.Restore.Spec.TiDBGroup.Name))
	case seen.Restore != nil: // stays with the group that it names
		p.Make = renderRestore(c, seen.Restore.Spec.TiDBGroup.Name)
	case seen.Through != "":
		p.Make = renderRestore(c, seen.Through)
	}
	return p
}

// giveUp is a cluster whose spec does not ask for the data any more: clients are let in when
// nothing writes any more.
func giveUp(c *v1alpha1.TidbCluster, live *v1alpha1.Restore) Plan {
	p := Plan{Closed: true, Outcome: waitForRestore(v1alpha1.ReasonDeleting, "Restore "+live.Name+", which the spec no longer asks for, is stopped before clients are let in")}
	if !c.Spec.Paused && live.DeletionTimestamp == nil {
		p.Remove = live
	}
	return p
}

// restoreOutcome passes on what the Restore says.
func restoreOutcome(c *v1alpha1.TidbCluster, seen Seen) step.Outcome {
	name := "Restore " + Name(c.Name)
	switch {
	case seen.Restore == nil && seen.Through == "": // the name may be that of another owner's group
		return waitForRestore(v1alpha1.ReasonWaitingForRestore, name+" is made when the first TiDBGroup is")
	case seen.Restore == nil:
		return waitForRestore(v1alpha1.ReasonCreating, "creating "+name)
	}
	said, generation := seen.Restore.Status.Conditions, seen.Restore.Generation
	if stalled := gate.FindCurrentCondition(said, generation, v1alpha1.ConditionStalled); stalled != nil {
		left := "without its data"
		if !isWaiting(seen.Restore) {
			left = "with the part of its data that is there"
		}
		return stallForUser(stalled.Reason, fmt.Sprintf("%s: %s; or begin %s: %s", name, strings.TrimSuffix(stalled.Message, "."), left, skipRestoreCommand(c)))
	}
	ready := gate.FindCurrentCondition(said, generation, v1alpha1.ConditionReady)
	switch {
	case ready == nil && seen.Overdue:
		return waitForRestore(v1alpha1.ReasonWaitingForRestore, name+" has no current status: is the backup operator running?")
	case ready == nil:
		o := waitForRestore(v1alpha1.ReasonWaitingForRestore, name+" was changed, and its operator has not processed it yet")
		o.After = gate.ProcessingTimeout
		return o
	}
	return waitForRestore(v1alpha1.ReasonWaitingForRestore, "no client is let in before "+name+" is complete: "+ready.Message)
}

// isComplete reports whether a Restore has written all. It is done once: what it says of a later
// version of its spec does not matter.
func isComplete(r *v1alpha1.Restore) bool {
	return meta.IsStatusConditionTrue(r.Status.Conditions, v1alpha1.ConditionReady)
}

// isWaiting reports whether a Restore has written nothing yet.
func isWaiting(r *v1alpha1.Restore) bool {
	return r.Status.State == "" || r.Status.State == v1alpha1.RunWaiting
}

// skipRestoreCommand reports how to begin without the data.
func skipRestoreCommand(c *v1alpha1.TidbCluster) string {
	return fmt.Sprintf("kubectl -n %s patch tidbcluster %s --type=merge -p '{\"spec\":{\"bootstrapFrom\":null}}'", c.Namespace, c.Name)
}

// renderRestore renders the Restore, which writes through a TiDBGroup.
func renderRestore(c *v1alpha1.TidbCluster, through string) *v1alpha1.Restore {
	from := c.Spec.BootstrapFrom.DeepCopy()
	return &v1alpha1.Restore{
		ObjectMeta: metav1.ObjectMeta{
			Name: Name(c.Name), Namespace: c.Namespace,
			Labels:          map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy, v1alpha1.LabelName: "tidb", v1alpha1.LabelUmbrella: c.Name},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(c, v1alpha1.GroupVersion().WithKind(v1alpha1.KindTidbCluster))},
		},
		Spec: v1alpha1.RestoreSpec{
			TiDBGroup: v1alpha1.LocalReference{Name: through}, From: from.RestoreSource, PointInTime: from.PointInTime,
			Type: from.Type, Physical: from.Physical, Logical: from.Logical, Login: from.Login, RunPod: from.RunPod,
		},
	}
}

func waitForRestore(reason, message string) step.Outcome {
	return step.Wait("Restore", deadline, reason, message)
}

func stallForUser(reason, message string) step.Outcome {
	o := step.Stall(reason, message)
	o.After = deadline
	return o
}
