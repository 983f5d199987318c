package group

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/disruption"
	"github.com/tidb-groups/tidb-groups/shared/gate"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/origin"
	"github.com/tidb-groups/tidb-groups/shared/planning"
	"github.com/tidb-groups/tidb-groups/shared/revision"
	"github.com/tidb-groups/tidb-groups/shared/rollout"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/workload"
)

// MakePlan plans the children of a group. It is pure.
func MakePlan(g v1alpha1.Group, s observation.Snapshot, r component.Rendering) (planning.Plan, error) {
	spec := g.GetComponentSpec()
	r.Problems = append(slices.Clone(r.Problems), rollout.CheckDisruption(spec.Disruption)...)
	if o := checkPreconditions(g, s, r); o.Kind != step.KindDone {
		return planNothing(g, s, r, o), nil
	}
	target, err := rollout.ResolveTarget(s, addTrustDigest(r, s))
	if err != nil {
		return planNothing(g, s, r, step.Outcome{}), err
	}
	if secret, left := s.Certificates.RecentChange(g, s.Now); left > 0 && len(s.Instances) > 0 && target.Hash != g.GetGroupStatus().CurrentRevision {
		return planNothing(g, s, r, step.RetryAfter(left, v1alpha1.ReasonRestartPending, "Secret "+secret+" has just changed: until all pods have it, members are not restarted, which let certain common names connect alone")), nil
	}
	objects, difference, err := groupObjects(g, s, r, target)
	if err != nil {
		return planNothing(g, s, r, step.Outcome{}), err
	}
	target.NewRendering = cmp.Or(target.NewRendering, difference)
	plan, err := planMembers(planning.Inputs{
		Group: g, Snapshot: s, Rendering: r, Target: target,
		StoredFiles: sync.OnceValues(func() (planning.StoredFiles, error) { return planning.DecodeStoredFiles(s, target) }),
	})
	if err != nil {
		return planNothing(g, s, r, step.Outcome{}), err
	}
	plan.Objects, plan.Target, plan.Gate = objects, target, r.Gate
	if was := g.GetGroupStatus().UpdateRevision; was != "" && was != target.Hash {
		plan.Changes = target.ChangesSince(was, s.Revisions)
	}
	if spec.Paused {
		plan = pausePlan(plan, g, s)
	}
	return plan, nil
}

// checkPreconditions says why nothing can be planned for a group; Done if something can.
func checkPreconditions(g v1alpha1.Group, s observation.Snapshot, r component.Rendering) step.Outcome {
	switch {
	case g.GetDeletionTimestamp() != nil:
		// Owner references release everything; the Instances' own finalizers
		// stop the pods and apply the claim retention.
		return step.Wait("Instance", member.WaitDeadline, v1alpha1.ReasonDeleting, describeDeletion(s.Instances))
	case len(r.Problems) > 0:
		return step.Stall(v1alpha1.ReasonInvalidSpec, strings.Join(r.Problems, "; "))
	}
	if o := step.Worst(s.Certificates.Judge(g, s.PDGroup, podNames(s), s.Now), r.Blocked); o.Kind != step.KindDone {
		return o
	}
	return observation.CheckNames(g, s)
}

// describeDeletion says what keeps a group that is being deleted: the first of its Instances that says
// what it waits for.
func describeDeletion(instances []*v1alpha1.Instance) string {
	text := fmt.Sprintf("%d Instances are still being deleted", len(instances))
	for _, i := range instances {
		if c := meta.FindStatusCondition(i.Status.Conditions, v1alpha1.ConditionUpToDate); c != nil && c.Status == metav1.ConditionFalse {
			return text + ": Instance " + i.Name + ": " + c.Message
		}
	}
	return text
}

// planNothing is the plan that changes nothing but the PodDisruptionBudget, and says why.
func planNothing(g v1alpha1.Group, s observation.Snapshot, r component.Rendering, why step.Outcome) planning.Plan {
	return planning.Plan{
		Objects:     planning.Objects{Budget: keepBudget(g, s, r.Budget)},
		Disruptions: planning.NoDisruptions(), Gate: r.Gate, Outcome: why,
		ConfigChanges: planning.ConfigChanges{ConfigOutcome: step.Done()}, LeaderEvictions: planning.LeaderEvictions{EvictionOutcome: step.Done()},
	}
}

// groupObjects are the objects of the group beside its Instances. difference says how this
// operator would render Services otherwise that it leaves as they are.
func groupObjects(g v1alpha1.Group, s observation.Snapshot, r component.Rendering, target revision.Target) (out planning.Objects, difference string, err error) {
	out.Budget = r.Budget
	if out.Services, difference, err = rollout.KeptServices(g, s, r, target.Stored); err != nil {
		return out, "", err
	}
	if out.ConfigMap, err = rollout.NewConfigMap(g, s, target); err != nil {
		return out, "", err
	}
	if !target.Stored {
		if out.Revision, err = rollout.NewRevision(g, target); err != nil {
			return out, "", err
		}
	}
	out.Prune = rollout.Prune(g, s, target)
	return out, difference, nil
}

// addTrustDigest has members be restarted when the cluster's own CA has changed: most read ca.crt
// only when they start.
func addTrustDigest(r component.Rendering, s observation.Snapshot) component.Rendering {
	trust := s.Certificates.Trust()
	if v1alpha1.SourceOf(s.PDGroup).SelfSigned == nil || trust == "" {
		return r
	}
	r.Inputs = map[string]any{"pods": r.Inputs, "trust": trust}
	r.Template = *r.Template.DeepCopy()
	if r.Template.Annotations == nil {
		r.Template.Annotations = map[string]string{}
	}
	r.Template.Annotations[v1alpha1.AnnotationTrust] = trust
	return r
}

// podNames are the names of the pods that there are, or will be soon.
func podNames(s observation.Snapshot) []string {
	var out []string
	for _, i := range s.Instances {
		out = append(out, i.Name)
	}
	return out
}

// pausePlan takes everything that would be done out of a plan and says what that is. A member
// that has recovered releases the Lease all the same: the rest of the cluster waits for
// it. The PodDisruptionBudget is kept.
func pausePlan(plan planning.Plan, g v1alpha1.Group, s observation.Snapshot) planning.Plan {
	done := plan.Lease.Release && !slices.ContainsFunc(plan.Calls, func(c component.Call) bool { return s.Lease.NamesInstance(c.Instance) })
	held := plan.Outcome.Reason == v1alpha1.ReasonPaused || len(plan.Notes) > 0 || plan.Revision != nil || len(plan.Calls) > 0 || len(plan.Deletes) > 0 || plan.Lease.Take != nil || len(plan.Drained) > 0
	plan.Objects, plan.Instances = planning.Objects{Budget: keepBudget(g, s, plan.Budget)}, nil
	plan.Calls, plan.Evictions, plan.Deletes, plan.Question = nil, nil, nil, nil
	plan.ConfigUpdates, plan.ConfigOutcome = nil, step.Done()
	plan.Drained, plan.Waiting = map[string]bool{}, map[string]string{}
	plan.Rechecks = slices.DeleteFunc(plan.Rechecks, func(c planning.Recheck) bool { return !done || !s.Lease.NamesInstance(c.Instance) })
	if !done {
		plan.Lease = planning.LeaseChange{}
	}
	edit := origin.OfGroup(g)
	message := fmt.Sprintf("paused: set %s to false to go on: %s", edit.SharedField("paused"), edit.Edit())
	explainPausedEvictions(&plan, message)
	if !held {
		return plan
	}
	if len(plan.Notes) > 0 {
		message += "; next: " + plan.Notes[0]
	} else if plan.Outcome.Message != "" {
		message += "; next: " + plan.Outcome.Message
	}
	plan.Outcome = step.Wait(g.GroupKind(), member.WaitDeadline, v1alpha1.ReasonPaused, message)
	return plan
}

// keepBudget is what becomes of the PodDisruptionBudget of a group of which nothing else is changed: it
// guards the stores or voters of its cluster while nodes are drained, by what PD says of them. That
// of a group alone rests on its spec.
func keepBudget(g v1alpha1.Group, s observation.Snapshot, wanted *policyv1.PodDisruptionBudget) *policyv1.PodDisruptionBudget {
	if info, _ := v1alpha1.LookupComponent(g.GroupKind()); info.Stateless || s.Budget == nil || g.GetDeletionTimestamp() != nil {
		return nil
	}
	return wanted
}

// mostImportant is the worst of what the members report, of what holds a disruption back,
// and of what is independent of a roll. The latter hides none of what holds a roll back.
func mostImportant(members, disruptions, volumes step.Outcome) step.Outcome {
	if rollout.IsIndependentOfRoll(members.Reason) {
		return step.Worst(disruptions, members, volumes)
	}
	return step.Worst(members, disruptions, volumes)
}

// groupOutcome says why the group is not yet what its spec asks for.
func groupOutcome(in planning.Inputs, stops disruption.Result, creating string) step.Outcome {
	wait := func(source, reason, message string) step.Outcome {
		return step.Wait(source, member.WaitDeadline, reason, message)
	}
	if (creating != "" || IsResuming(in.Group, in.Snapshot)) && !in.Rendering.Gate.Open {
		return wait("PDGroup", in.Rendering.GateReason, in.Rendering.Gate.Message)
	}
	if o := notReadyOutcome(in, stops); o.Kind != step.KindDone {
		return o
	}
	if creating != "" {
		return wait("Instance", v1alpha1.ReasonCreating, creating)
	}
	if in.Target.NewRendering != "" {
		return wait(in.Group.GroupKind(), v1alpha1.ReasonNewRendering, "this operator would render pods or Services differently, and leaves them as they are until the spec changes: "+in.Target.NewRendering)
	}
	return step.Done()
}

// IsResuming reports whether Instances of a group that is not suspended any more still are.
func IsResuming(g v1alpha1.Group, s observation.Snapshot) bool {
	return !g.GetComponentSpec().Suspended && slices.ContainsFunc(s.Instances, func(i *v1alpha1.Instance) bool {
		return workload.IsOwned(g, i) && i.Spec.Suspended && !i.Spec.Retire && i.DeletionTimestamp == nil
	})
}

// notReadyOutcome is the most specific reason of an Instance that is not Ready. How far a
// member is on its way to leave is reported elsewhere. An Instance of another group that
// had the same name blocks its slot until it has gone.
func notReadyOutcome(in planning.Inputs, stops disruption.Result) step.Outcome {
	if in.Group.GetComponentSpec().Suspended {
		for _, i := range in.Snapshot.Instances {
			switch {
			case i.Status.PodUID == "":
			case in.Group.GetComponentSpec().Paused && !i.Spec.Suspended:
				return step.Wait("Instance", member.WaitDeadline, v1alpha1.ReasonPaused, fmt.Sprintf("stop pod %s", i.Name))
			case !in.Rendering.MaySuspend.IsAllowed() && !i.Spec.Suspended:
				return step.Wait("Instance", member.WaitDeadline, v1alpha1.ReasonSuspended, fmt.Sprintf("pod %s still runs: %s", i.Name, in.Rendering.MaySuspend.Reason()))
			default:
				return step.Wait("Instance", member.WaitDeadline, v1alpha1.ReasonSuspended, fmt.Sprintf("pod %s is still stopping", i.Name))
			}
		}
		return step.Done()
	}
	worst := step.Done()
	for _, i := range in.Snapshot.Instances {
		own := workload.IsOwned(in.Group, i)
		if own && (i.Spec.Retire || i.DeletionTimestamp != nil && member.HasMemberFinalizer(i)) || stops.Disrupted[i.Name] == member.Remove || slices.Contains(stops.Deletes, i) {
			continue
		}
		o := nameAddressFamily(in.Group, i, member.OutcomeOf(i))
		if o.Reason == v1alpha1.ReasonWaitingForInstances {
			if o.After = gate.ProcessingTimeout; in.Snapshot.Overdue[i.UID] {
				o.After, o.Message = member.WaitDeadline, o.Message+": is it running?"
			}
		}
		switch {
		case !own:
			o = step.Wait("Instance", member.WaitDeadline, v1alpha1.ReasonDeleting, "Instance "+i.Name+" belongs to a deleted group of the same name; it is recreated once that is gone: kubectl -n "+i.Namespace+" describe instance "+i.Name)
		case member.HasLeft(i):
			o = step.Wait("Instance", member.WaitDeadline, v1alpha1.ReasonDeleting, "Instance "+i.Name+" is being deleted: its member has left, and its pod has not stopped yet: kubectl -n "+i.Namespace+" describe instance "+i.Name)
		case i.DeletionTimestamp != nil:
			o = member.AwaitRecreation(i)
		}
		if member.Specificity(o) > member.Specificity(worst) {
			worst = o
		}
	}
	return worst
}

// nameAddressFamily names the setting without which no kubelet reaches a store by IPv6: by default the
// status port of stores listens at IPv4 addresses. Go listens at both, and other members start.
func nameAddressFamily(g v1alpha1.Group, i *v1alpha1.Instance, o step.Outcome) step.Outcome {
	info, _ := v1alpha1.LookupComponent(g.GroupKind())
	if o.Reason == v1alpha1.ReasonPodNotReady && info.Stores && strings.Contains(i.Status.PodIP, ":") && !g.GetComponentSpec().PreferIPv6 {
		edit := origin.OfGroup(g)
		o.Message = fmt.Sprintf("Instance %s: its pod has the IPv6 address %s, and its status port listens at IPv4 addresses only: set %s to true: %s", i.Name, i.Status.PodIP, edit.SharedField("preferIPv6"), edit.Edit())
	}
	return o
}
