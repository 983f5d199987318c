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

// NextRecord returns what status.recovery is to say, and what is waited for, or why a
// request is not obeyed. A phase is written down before anything is done in it:
// what Plan does follows from the status that was read, never from Next.
func NextRecord(g *v1alpha1.PDGroup, s observation.Snapshot) (*v1alpha1.PDRecovery, step.Outcome) {
	before := g.Status.Recovery
	request, asked := g.Annotations[v1alpha1.AnnotationRecoverQuorum]
	switch {
	case g.DeletionTimestamp != nil:
		return before, step.Done()
	case isUnderWay(before) && g.Spec.Paused:
		return before, step.Wait("PDGroup", recheckPeriod, v1alpha1.ReasonPaused, fmt.Sprintf("paused while PD is rebuilt from Instance %s: set spec.paused to false to go on", before.Survivor.Name))
	case isUnderWay(before) && asked && request == before.Request:
		return advancePhase(g, s)
	case isUnderWay(before) && before.Phase == v1alpha1.RecoveryStopping:
		return nil, endWithChange("the request to rebuild PD from Instance %s was taken back", before.Survivor.Name)
	case isUnderWay(before) && !asked:
		return advancePhase(g, s)
	case isUnderWay(before):
		return changeSurvivor(g, s, request)
	case !asked:
		return nil, step.Done()
	case before != nil && request == before.Request:
		return before, checkObeyed(g, s, request)
	}
	return beginRecovery(g, s, request)
}

// beginRecovery obeys a request, or says why not. One that comes when a member may have
// been started with Flag begins where it cannot be taken back any more: that member
// must not meet the others again.
func beginRecovery(g *v1alpha1.PDGroup, s observation.Snapshot, request string) (*v1alpha1.PDRecovery, step.Outcome) {
	before := g.Status.Recovery
	if o := checkRequest(g, s, request); o.Kind != step.KindDone {
		return before, o
	}
	name, _, _ := parseRequest(request)
	next := &v1alpha1.PDRecovery{Request: request, Phase: v1alpha1.RecoveryStopping}
	for _, i := range s.Instances {
		if i.Name == name {
			next.Survivor = newRecord(i)
			continue
		}
		next.Discarded = append(next.Discarded, newRecord(i))
	}
	if isUnderWay(before) {
		next.Phase = v1alpha1.RecoveryForcing
		for _, m := range append(slices.Clone(before.Discarded), before.Survivor) {
			if s.Instance(m.Name) == nil {
				next.Discarded = append(next.Discarded, m) // its claims are still there
			}
		}
		sortDiscarded(next)
	}
	return next, endWithChange("PD will be rebuilt from Instance %s", name)
}

// sortDiscarded puts the discarded in the order of their names.
func sortDiscarded(r *v1alpha1.PDRecovery) {
	slices.SortFunc(r.Discarded, func(a, b v1alpha1.PDRecoveryMember) int { return strings.Compare(a.Name, b.Name) })
}

// changeSurvivor looks at a request for another survivor while PD is rebuilt from one. It
// is obeyed while that one does not answer, for its data may be of no use, and
// until Retiring: by then no member has joined it, and every other that was not deleted by
// a user has stopped and has its claims, which are not marked as retired.
func changeSurvivor(g *v1alpha1.PDGroup, s observation.Snapshot, request string) (*v1alpha1.PDRecovery, step.Outcome) {
	before := g.Status.Recovery
	back := "put the request back: " + requestCommand(g, before.Survivor.Name)
	var word step.Outcome
	switch {
	case before.Phase == v1alpha1.RecoveryRetiring:
		word = stallForUser("PD was rebuilt from Instance %s, and the others are being deleted: %s", before.Survivor.Name, back)
	case hasQuorum(g, s.PD):
		word = stallForUser("PD is being rebuilt from Instance %s, which answers: %s", before.Survivor.Name, back)
	default:
		var next *v1alpha1.PDRecovery
		if next, word = beginRecovery(g, s, request); next != before {
			return next, word
		}
	}
	next, going := advancePhase(g, s)
	return next, step.Worst(word, going)
}

// advancePhase goes on with a recovery.
func advancePhase(g *v1alpha1.PDGroup, s observation.Snapshot) (*v1alpha1.PDRecovery, step.Outcome) {
	before := g.Status.Recovery
	survivor := findInstance(s, before.Survivor)
	early := before.Phase == v1alpha1.RecoveryStopping
	switch {
	case early && (survivor == nil || survivor.DeletionTimestamp != nil):
		return nil, endWithChange("Instance %s, which PD was to be rebuilt from, was deleted", before.Survivor.Name)
	case early && hasQuorum(g, s.PD):
		return nil, endWithChange("PD has a quorum again, and is not rebuilt")
	case survivor == nil && before.Phase == v1alpha1.RecoveryRetiring:
		return before, step.Stall(v1alpha1.ReasonRecoveringQuorum, fmt.Sprintf("Instance %s, which PD was rebuilt from, is gone, and the others are being deleted: no other can be named now; the claims are left: kubectl -n %s get pvc -l %s=%s",
			before.Survivor.Name, g.Namespace, v1alpha1.LabelGroup, g.Name))
	case survivor == nil:
		return before, step.Stall(v1alpha1.ReasonRecoveringQuorum, fmt.Sprintf("Instance %s, which PD is rebuilt from, is gone: name another one: %s", before.Survivor.Name, exampleCommand(g)))
	}
	if early || before.Phase == v1alpha1.RecoveryForcing {
		if next, o := waitForStop(g, s, survivor); o.Kind != step.KindDone {
			return next, o
		}
	}
	if own := bootstrap.OwnPD(g, s); !own.IsAllowed() && !early {
		return before, step.Stall(v1alpha1.ReasonClusterIDMismatch, own.Reason())
	}
	switch before.Phase {
	case v1alpha1.RecoveryStopping:
		return enterPhase(g, v1alpha1.RecoveryForcing)
	case v1alpha1.RecoveryForcing:
		if IsForced(survivor) && isRunningAsAsked(survivor) && IsAlone(g, s.PD, survivor.Name) {
			return enterPhase(g, v1alpha1.RecoveryRestarting)
		}
		return before, waitForSurvivor(g, survivor, "Instance %s is started with %s", survivor.Name, Flag)
	case v1alpha1.RecoveryRestarting:
		if !IsForced(survivor) && isRunningAsAsked(survivor) && (member.IsReady(survivor) || member.LosesClaim(survivor)) && IsAlone(g, s.PD, survivor.Name) {
			return enterPhase(g, v1alpha1.RecoveryRetiring)
		}
		return before, waitForSurvivor(g, survivor, "Instance %s is started without %s, before another member joins", survivor.Name, Flag)
	case v1alpha1.RecoveryRetiring:
		return waitForRetirement(g, s, survivor)
	case v1alpha1.RecoveryFinished:
	}
	return before, step.Done()
}

// waitForStop waits, before the survivor is started with Flag, for all other pods to be
// gone, those of what PD serves included; Done when they are.
func waitForStop(g *v1alpha1.PDGroup, s observation.Snapshot, survivor *v1alpha1.Instance) (*v1alpha1.PDRecovery, step.Outcome) {
	before := g.Status.Recovery
	for _, i := range s.Instances {
		if i.UID != before.Survivor.UID && !isDiscarded(before, i) {
			// It was made meanwhile, by an operator that did not know.
			next := before.DeepCopy()
			next.Discarded = slices.DeleteFunc(next.Discarded, func(m v1alpha1.PDRecoveryMember) bool { return m.Name == i.Name })
			next.Discarded = append(next.Discarded, newRecord(i))
			sortDiscarded(next)
			return next, endWithChange("Instance %s stops as well", i.Name)
		}
	}
	if name := FindRunning(g, s.Instances); name != "" {
		return before, waitForInstance(s.Instance(name), "the pod of Instance %s stops before PD is rebuilt from Instance %s", name, survivor.Name)
	}
	if i := FindRunningClient(s.ClusterInstances); i != nil && !startsForced(survivor) {
		return before, step.Wait("Instance", recheckPeriod, v1alpha1.ReasonRecoveringQuorum, describeRunning(s, i))
	}
	return before, step.Done()
}

// waitForRetirement waits for the Instances that PD was rebuilt without to be gone, and for
// their claims to be marked: no member may start on one of those again.
func waitForRetirement(g *v1alpha1.PDGroup, s observation.Snapshot, survivor *v1alpha1.Instance) (*v1alpha1.PDRecovery, step.Outcome) {
	before := g.Status.Recovery
	for _, m := range before.Discarded {
		switch i := findInstance(s, m); {
		case i != nil && !IsAlone(g, s.PD, survivor.Name):
			return before, waitForInstance(survivor, "Instance %s is deleted once PD answers and lists only member %s", i.Name, survivor.Name)
		case i != nil:
			return before, step.Wait("Instance", recheckPeriod, v1alpha1.ReasonRecoveringQuorum, fmt.Sprintf("Instance %s is being deleted: PD was rebuilt without it; its claims stay", i.Name))
		}
		if claim := findUnmarkedClaim(s, m.Name); claim != "" {
			return before, step.Wait("PersistentVolumeClaim", recheckPeriod, v1alpha1.ReasonRecoveringQuorum, fmt.Sprintf("claim %s of Instance %s, which PD was rebuilt without, must be marked as retired, so that no new member starts on it; if that was prevented: kubectl -n %s annotate pvc %s %s=recovered",
				claim, m.Name, g.Namespace, claim, v1alpha1.AnnotationRetired))
		}
	}
	return enterPhase(g, v1alpha1.RecoveryFinished)
}

// findUnmarkedClaim returns a claim of an Instance that is gone which a new one would be
// started on; empty if there is none.
func findUnmarkedClaim(s observation.Snapshot, name string) string {
	for _, claim := range s.Claims[name] {
		if s.Instance(name) == nil && claim.DeletionTimestamp == nil && claim.Annotations[v1alpha1.AnnotationRetired] == "" {
			return claim.Name
		}
	}
	return ""
}

// isRunningAsAsked reports whether the pod of an Instance is the one that its spec asks for.
func isRunningAsAsked(i *v1alpha1.Instance) bool {
	return !i.Spec.Suspended && i.Status.PodUID != "" && i.Status.Revision == i.Spec.Revision && i.Status.ObservedGeneration == i.Generation
}

// enterPhase begins a phase.
func enterPhase(g *v1alpha1.PDGroup, phase v1alpha1.PDRecoveryPhase) (*v1alpha1.PDRecovery, step.Outcome) {
	next := g.Status.Recovery.DeepCopy()
	next.Phase = phase
	return next, endWithChange("%s", DescribePhase(next))
}

// endWithChange ends a step after which the status that it has changed is looked at.
func endWithChange(format string, args ...any) step.Outcome {
	return step.Conflict(v1alpha1.ReasonRecoveringQuorum, fmt.Sprintf(format, args...))
}

// waitForInstance waits for an Instance, and says what it says of itself.
func waitForInstance(i *v1alpha1.Instance, format string, args ...any) step.Outcome {
	message := fmt.Sprintf(format, args...)
	if o := member.OutcomeOf(i); o.Kind != step.KindDone {
		message += ": " + o.Message
	}
	return step.Wait("Instance", recheckPeriod, v1alpha1.ReasonRecoveringQuorum, message)
}

// waitForSurvivor waits for the survivor, and says what to do if it does not come up.
func waitForSurvivor(g *v1alpha1.PDGroup, survivor *v1alpha1.Instance, format string, args ...any) step.Outcome {
	o := waitForInstance(survivor, format, args...)
	switch {
	case member.LosesClaim(survivor):
		// PD may answer, and then no other is obeyed.
		o.Message += fmt.Sprintf("; its pod is not restarted, because its data would go with it: save the data, stop the pod: kubectl -n %s delete pod %s, then name another one: %s", g.Namespace, survivor.Name, exampleCommand(g))
	case !meta.IsStatusConditionTrue(survivor.Status.Conditions, v1alpha1.ConditionPodReady):
		o.Message += "; if it cannot come back, name another one: " + exampleCommand(g)
	}
	return o
}

// DescribePhase says of a phase, to a user, what is done in it.
func DescribePhase(r *v1alpha1.PDRecovery) string {
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
