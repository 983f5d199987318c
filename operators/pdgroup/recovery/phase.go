package recovery

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/pdgroup/bootstrap"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// Next returns what status.recovery is to say, and what is waited for, or why a
// request is not obeyed. A phase is written down before anything is done in it:
// what Plan does follows from the status that was read, never from Next.
func Next(g *v1alpha1.PDGroup, s observation.Snapshot) (*v1alpha1.PDRecovery, step.Outcome) {
	before := g.Status.Recovery
	request, asked := g.Annotations[v1alpha1.AnnotationRecoverQuorum]
	switch {
	case g.DeletionTimestamp != nil:
		return before, step.Done()
	case active(before) && g.Spec.Paused:
		return before, step.Wait("PDGroup", patience, v1alpha1.ReasonPaused, fmt.Sprintf("paused while PD is rebuilt from Instance %s: set spec.paused to false to go on", before.Survivor.Name))
	case active(before) && asked && request == before.Request:
		return advance(g, s)
	case active(before) && before.Phase == v1alpha1.RecoveryStopping:
		return nil, moved("the request to rebuild PD from Instance %s was taken back", before.Survivor.Name)
	case active(before) && !asked:
		return advance(g, s)
	case active(before):
		return another(g, s, request)
	case !asked:
		return nil, step.Done()
	case before != nil && request == before.Request:
		return before, step.Done()
	}
	return begin(g, s, request)
}

// begin obeys a request, or says why not. One that comes when a member may have
// been started with Flag begins where it cannot be taken back any more: that member
// must not meet the others again.
func begin(g *v1alpha1.PDGroup, s observation.Snapshot, request string) (*v1alpha1.PDRecovery, step.Outcome) {
	before := g.Status.Recovery
	if o := refuse(g, s, request); o.Kind != step.KindDone {
		return before, o
	}
	name, _, _ := parse(request)
	next := &v1alpha1.PDRecovery{Request: request, Phase: v1alpha1.RecoveryStopping}
	for _, i := range s.Instances {
		if i.Name == name {
			next.Survivor = record(i)
			continue
		}
		next.Discarded = append(next.Discarded, record(i))
	}
	if active(before) {
		next.Phase = v1alpha1.RecoveryForcing
		for _, m := range append(slices.Clone(before.Discarded), before.Survivor) {
			if s.Instance(m.Name) == nil {
				next.Discarded = append(next.Discarded, m) // its claims are still there
			}
		}
		sort(next)
	}
	return next, moved("PD will be rebuilt from Instance %s", name)
}

// sort puts the discarded in the order of their names.
func sort(r *v1alpha1.PDRecovery) {
	slices.SortFunc(r.Discarded, func(a, b v1alpha1.PDRecoveryMember) int { return strings.Compare(a.Name, b.Name) })
}

// another looks at a request for another survivor while PD is rebuilt from one. It
// is obeyed while that one does not answer, for its data may be of no use, and
// until Retiring: by then no member has joined it, and every other that was not deleted by
// a user has stopped and has its claims, which are not marked as retired.
func another(g *v1alpha1.PDGroup, s observation.Snapshot, request string) (*v1alpha1.PDRecovery, step.Outcome) {
	before := g.Status.Recovery
	back := "put the request back: " + give(g, before.Survivor.Name)
	var word step.Outcome
	switch {
	case before.Phase == v1alpha1.RecoveryRetiring:
		word = never("PD was rebuilt from Instance %s, and the others are being deleted: %s", before.Survivor.Name, back)
	case quorate(g, s.PD):
		word = never("PD is being rebuilt from Instance %s, which answers: %s", before.Survivor.Name, back)
	default:
		var next *v1alpha1.PDRecovery
		if next, word = begin(g, s, request); next != before {
			return next, word
		}
	}
	next, going := advance(g, s)
	return next, step.Worst(word, going)
}

// advance goes on with a recovery.
func advance(g *v1alpha1.PDGroup, s observation.Snapshot) (*v1alpha1.PDRecovery, step.Outcome) {
	before := g.Status.Recovery
	survivor := find(s, before.Survivor)
	early := before.Phase == v1alpha1.RecoveryStopping
	switch {
	case early && (survivor == nil || survivor.DeletionTimestamp != nil):
		return nil, moved("Instance %s, which PD was to be rebuilt from, was deleted", before.Survivor.Name)
	case early && quorate(g, s.PD):
		return nil, moved("PD has a quorum again, and is not rebuilt")
	case survivor == nil && before.Phase == v1alpha1.RecoveryRetiring:
		return before, step.Stall(v1alpha1.ReasonRecoveringQuorum, fmt.Sprintf("Instance %s, which PD was rebuilt from, is gone, and the others are being deleted: no other can be named now; the claims are left: kubectl -n %s get pvc -l %s=%s",
			before.Survivor.Name, g.Namespace, v1alpha1.LabelGroup, g.Name))
	case survivor == nil:
		return before, step.Stall(v1alpha1.ReasonRecoveringQuorum, fmt.Sprintf("Instance %s, which PD is rebuilt from, is gone: name another one: %s", before.Survivor.Name, example(g)))
	}
	if early || before.Phase == v1alpha1.RecoveryForcing {
		if next, o := halt(g, s, survivor); o.Kind != step.KindDone {
			return next, o
		}
	}
	if own := bootstrap.OwnPD(g, s); !own.IsAllowed() && !early {
		return before, step.Stall(v1alpha1.ReasonClusterIDMismatch, own.Reason())
	}
	switch before.Phase {
	case v1alpha1.RecoveryStopping:
		return enter(g, v1alpha1.RecoveryForcing)
	case v1alpha1.RecoveryForcing:
		if Forced(survivor) && runs(survivor) && Alone(g, s.PD, survivor.Name) {
			return enter(g, v1alpha1.RecoveryRestarting)
		}
		return before, coming(g, survivor, "Instance %s is started with %s", survivor.Name, Flag)
	case v1alpha1.RecoveryRestarting:
		if !Forced(survivor) && runs(survivor) && member.IsReady(survivor) && Alone(g, s.PD, survivor.Name) {
			return enter(g, v1alpha1.RecoveryRetiring)
		}
		return before, coming(g, survivor, "Instance %s is started without %s, before another member joins", survivor.Name, Flag)
	case v1alpha1.RecoveryRetiring:
		return retiring(g, s, survivor)
	case v1alpha1.RecoveryFinished:
	}
	return before, step.Done()
}

// halt waits, before the survivor is started with Flag, for all other pods to be
// gone, those of what PD serves included; Done when they are.
func halt(g *v1alpha1.PDGroup, s observation.Snapshot, survivor *v1alpha1.Instance) (*v1alpha1.PDRecovery, step.Outcome) {
	before := g.Status.Recovery
	for _, i := range s.Instances {
		if i.UID != before.Survivor.UID && !discards(before, i) {
			// It was made meanwhile, by an operator that did not know.
			next := before.DeepCopy()
			next.Discarded = slices.DeleteFunc(next.Discarded, func(m v1alpha1.PDRecoveryMember) bool { return m.Name == i.Name })
			next.Discarded = append(next.Discarded, record(i))
			sort(next)
			return next, moved("Instance %s stops as well", i.Name)
		}
	}
	if name := Running(g, s.Instances); name != "" {
		return before, waiting(s.Instance(name), "the pod of Instance %s stops before PD is rebuilt from Instance %s", name, survivor.Name)
	}
	if i := Serving(s.ClusterInstances); i != nil && !startsForced(survivor) {
		return before, step.Wait("Instance", patience, v1alpha1.ReasonRecoveringQuorum, keeps(s, i))
	}
	return before, step.Done()
}

// retiring waits for the Instances that PD was rebuilt without to be gone, and for
// their claims to be marked: no member may start on one of those again.
func retiring(g *v1alpha1.PDGroup, s observation.Snapshot, survivor *v1alpha1.Instance) (*v1alpha1.PDRecovery, step.Outcome) {
	before := g.Status.Recovery
	for _, m := range before.Discarded {
		switch i := find(s, m); {
		case i != nil && !Alone(g, s.PD, survivor.Name):
			return before, waiting(survivor, "Instance %s is deleted once PD answers and lists only member %s", i.Name, survivor.Name)
		case i != nil:
			return before, step.Wait("Instance", patience, v1alpha1.ReasonRecoveringQuorum, fmt.Sprintf("Instance %s is being deleted: PD was rebuilt without it; its claims stay", i.Name))
		}
		if claim := unmarked(s, m.Name); claim != "" {
			return before, step.Wait("PersistentVolumeClaim", patience, v1alpha1.ReasonRecoveringQuorum, fmt.Sprintf("claim %s of Instance %s, which PD was rebuilt without, must be marked as retired, so that no new member starts on it; if that was prevented: kubectl -n %s annotate pvc %s %s=recovered",
				claim, m.Name, g.Namespace, claim, v1alpha1.AnnotationRetired))
		}
	}
	return enter(g, v1alpha1.RecoveryFinished)
}

// unmarked returns a claim of an Instance that is gone which a new one would be
// started on; empty if there is none.
func unmarked(s observation.Snapshot, name string) string {
	for _, claim := range s.Claims[name] {
		if s.Instance(name) == nil && claim.DeletionTimestamp == nil && claim.Annotations[v1alpha1.AnnotationRetired] == "" {
			return claim.Name
		}
	}
	return ""
}

// runs reports whether the pod of an Instance is the one that its spec asks for.
func runs(i *v1alpha1.Instance) bool {
	return !i.Spec.Suspended && i.Status.PodUID != "" && i.Status.Revision == i.Spec.Revision && i.Status.ObservedGeneration == i.Generation
}

// enter begins a phase.
func enter(g *v1alpha1.PDGroup, phase v1alpha1.PDRecoveryPhase) (*v1alpha1.PDRecovery, step.Outcome) {
	next := g.Status.Recovery.DeepCopy()
	next.Phase = phase
	return next, moved("%s", Told(next))
}

// moved ends a step after which the status that it has changed is looked at.
func moved(format string, args ...any) step.Outcome {
	return step.Conflict(v1alpha1.ReasonRecoveringQuorum, fmt.Sprintf(format, args...))
}

// waiting waits for an Instance, and says what it says of itself.
func waiting(i *v1alpha1.Instance, format string, args ...any) step.Outcome {
	message := fmt.Sprintf(format, args...)
	if o := member.OutcomeOf(i); o.Kind != step.KindDone {
		message += ": " + o.Message
	}
	return step.Wait("Instance", patience, v1alpha1.ReasonRecoveringQuorum, message)
}

// coming waits for the survivor, and says what to do if it does not come up.
func coming(g *v1alpha1.PDGroup, survivor *v1alpha1.Instance, format string, args ...any) step.Outcome {
	o := waiting(survivor, format, args...)
	if !meta.IsStatusConditionTrue(survivor.Status.Conditions, v1alpha1.ConditionPodReady) {
		o.Message += "; if it cannot come back, name another one: " + example(g)
	}
	return o
}

// Told says of a phase, to a user, what is done in it.
func Told(r *v1alpha1.PDRecovery) string {
	survivor := "Instance " + r.Survivor.Name
	switch r.Phase {
	case v1alpha1.RecoveryStopping:
		return "PD is rebuilt from " + survivor + ": all others stop first, and keep their claims"
	case v1alpha1.RecoveryForcing:
		return "PD is rebuilt from " + survivor + ", which starts with " + Flag + ": all others stay stopped"
	case v1alpha1.RecoveryRestarting:
		return "PD answers with one member and the same cluster ID: " + survivor + " starts without " + Flag
	case v1alpha1.RecoveryRetiring:
		return "PD serves with one member: the Instances that it no longer knows are deleted, their claims stay"
	case v1alpha1.RecoveryFinished:
		return "PD was rebuilt from " + survivor + ": new members join one at a time"
	}
	return ""
}
