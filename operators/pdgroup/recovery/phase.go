package recovery

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/pdgroup/founding"
	"github.com/tidb-groups/tidb-groups/shared/group"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// Next returns what status.recovery is to say, and what is waited for, or why a
// request is not obeyed. A phase is written down before anything is done in it:
// what Plan does follows from the status that was read, never from Next.
func Next(g *v1alpha1.PDGroup, s group.Snapshot) (*v1alpha1.PDRecovery, step.Outcome) {
	before := g.Status.Recovery
	request, asked := g.Annotations[v1alpha1.AnnotationRecoverQuorum]
	switch {
	case g.DeletionTimestamp != nil:
		return before, step.Done()
	case active(before) && g.Spec.Paused:
		return before, step.Wait("PDGroup", patience, v1alpha1.ReasonPaused, fmt.Sprintf("paused while PD is rebuilt from Instance %s: set spec.paused to false to go on", before.Survivor.Name))
	case active(before) && asked && request == before.Request:
		return advance(g, s)
	case active(before) && before.Phase == v1alpha1.RecoveryStopping && !begun(s):
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

// begin obeys a request, or says why not.
func begin(g *v1alpha1.PDGroup, s group.Snapshot, request string) (*v1alpha1.PDRecovery, step.Outcome) {
	if o := refuse(g, s, request); o.Kind != step.KindDone {
		return g.Status.Recovery, o
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
	return next, moved("PD is to be rebuilt from Instance %s", name)
}

// another looks at a request for another survivor while PD is rebuilt from one. It
// is obeyed until the one has answered: its data may be of no use.
func another(g *v1alpha1.PDGroup, s group.Snapshot, request string) (*v1alpha1.PDRecovery, step.Outcome) {
	before := g.Status.Recovery
	word := never("PD is being rebuilt from Instance %s, which has answered: put %q back", before.Survivor.Name, before.Request)
	if before.Phase == v1alpha1.RecoveryStopping || before.Phase == v1alpha1.RecoveryForcing {
		next, o := begin(g, s, request)
		if next != before {
			return next, o
		}
		word = o
	}
	next, going := advance(g, s)
	return next, step.Worst(word, going)
}

// advance goes on with a recovery.
func advance(g *v1alpha1.PDGroup, s group.Snapshot) (*v1alpha1.PDRecovery, step.Outcome) {
	before := g.Status.Recovery
	survivor := find(s, before.Survivor)
	early := before.Phase == v1alpha1.RecoveryStopping && !begun(s)
	switch {
	case early && (survivor == nil || survivor.DeletionTimestamp != nil):
		return nil, moved("Instance %s, which PD was to be rebuilt from, was deleted", before.Survivor.Name)
	case early && quorate(g, s.PD):
		return nil, moved("PD has a quorum again, and is not rebuilt")
	case survivor == nil:
		return before, step.Stall(v1alpha1.ReasonRecoveringQuorum, fmt.Sprintf("Instance %s, which PD is rebuilt from, is gone: name another one: %s", before.Survivor.Name, example(g)))
	case founding.Mismatch(g, s) != "" && before.Phase != v1alpha1.RecoveryStopping:
		return before, step.Stall(v1alpha1.ReasonClusterIDMismatch, founding.Mismatch(g, s))
	}
	switch before.Phase {
	case v1alpha1.RecoveryStopping:
		return stopping(g, s)
	case v1alpha1.RecoveryForcing:
		if Forced(survivor) && runs(survivor) && Alone(g, s.PD, survivor.Name) {
			return enter(g, v1alpha1.RecoveryRestarting)
		}
		return before, waiting(survivor, "Instance %s is started with %s", survivor.Name, Flag)
	case v1alpha1.RecoveryRestarting:
		if !Forced(survivor) && runs(survivor) && group.InstanceReady(survivor) && Alone(g, s.PD, survivor.Name) {
			return enter(g, v1alpha1.RecoveryRetiring)
		}
		return before, waiting(survivor, "Instance %s is started without %s, before another member joins", survivor.Name, Flag)
	case v1alpha1.RecoveryRetiring:
		for _, m := range before.Discarded {
			if i := find(s, m); i != nil {
				return before, step.Wait("Instance", patience, v1alpha1.ReasonRecoveringQuorum, fmt.Sprintf("Instance %s is let go: PD was rebuilt without it; its claims stay", i.Name))
			}
		}
		return enter(g, v1alpha1.RecoveryFinished)
	case v1alpha1.RecoveryFinished:
	}
	return before, step.Done()
}

// stopping waits for all pods but the survivor's to be gone.
func stopping(g *v1alpha1.PDGroup, s group.Snapshot) (*v1alpha1.PDRecovery, step.Outcome) {
	before := g.Status.Recovery
	for _, i := range s.Instances {
		if i.UID != before.Survivor.UID && !discards(before, i) {
			// It was made meanwhile, by an operator that did not know.
			next := before.DeepCopy()
			next.Discarded = append(next.Discarded, record(i))
			slices.SortFunc(next.Discarded, func(a, b v1alpha1.PDRecoveryMember) int { return strings.Compare(a.Name, b.Name) })
			return next, moved("Instance %s stops as well", i.Name)
		}
	}
	if name := Running(g, s.Instances); name != "" {
		return before, waiting(s.Instance(name), "the pod of Instance %s stops before PD is rebuilt from Instance %s", name, before.Survivor.Name)
	}
	return enter(g, v1alpha1.RecoveryForcing)
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
	if o := group.InstanceOutcome(i); o.Kind != step.KindDone {
		message += ": " + o.Message
	}
	return step.Wait("Instance", patience, v1alpha1.ReasonRecoveringQuorum, message)
}

// Told says of a phase, to a person, what is done in it.
func Told(r *v1alpha1.PDRecovery) string {
	survivor := "Instance " + r.Survivor.Name
	switch r.Phase {
	case v1alpha1.RecoveryStopping:
		return "PD is rebuilt from " + survivor + ": all others stop first, and keep their claims"
	case v1alpha1.RecoveryForcing:
		return "all others have stopped: " + survivor + " starts with " + Flag
	case v1alpha1.RecoveryRestarting:
		return "PD answers with one member and the same cluster ID: " + survivor + " starts without " + Flag
	case v1alpha1.RecoveryRetiring:
		return "PD serves with one member: the Instances that it does not know any more are let go, their claims stay"
	case v1alpha1.RecoveryFinished:
		return "PD was rebuilt from " + survivor + ": new members join one at a time"
	}
	return ""
}
