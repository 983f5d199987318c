package group

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/gate"
	"github.com/tidb-groups/tidb-groups/shared/names"
	"github.com/tidb-groups/tidb-groups/shared/origin"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/revision"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/workload"
)

// waitDeadline is after how long an operator looks again by itself at what a
// watch should have reported.
const waitDeadline = time.Minute

// Rendering is what a component makes of its group's spec.
type Rendering struct {
	// Template of the pod, and what is wrong with the spec.
	Template corev1.PodTemplateSpec
	Problems []string
	// Inputs is the part of the spec that the template was rendered from. Two
	// equal inputs are one revision whatever the operator's version.
	Inputs any
	// Files of the ConfigMap, by name; the template mounts ConfigMapName of
	// them.
	Files map[string]string
	// Services of the group, and the part of the spec that only they were rendered
	// from; nil if there is none.
	Services      []*corev1.Service
	ServiceInputs any
	// Gate must be open before a first pod is started.
	Gate gate.Result
	// GateReason is the reason of a wait for the gate.
	GateReason string
	// ReadinessGates of the Instances.
	ReadinessGates []string
	// ClaimLoss policy of the Instances.
	ClaimLoss v1alpha1.ClaimLossPolicy
	// Adjust changes the template of one Instance in a way that makes no
	// revision of its own, whatever an earlier Adjust made of it; nil for none.
	Adjust func(slot int32, template *corev1.PodTemplateSpec)
	// First are the slots that are filled before others: the database counts on
	// their members.
	First []int32
	// CreateLimit bounds how many members are created at once, and says why;
	// nil means no bound.
	CreateLimit func() (limit int, reason string)
	// Settings are how running members take a changed configuration; nil for a
	// component that has to be restarted for it.
	Settings Settings
	// Disrupt answers for the members when some of them are to be stopped.
	Disrupt Component
	// Again returns what Disrupt would be if PD had said now what it says at that
	// moment. It is asked right before what cannot be taken back: a poll is up to
	// a second old. nil for a component that does not depend on PD.
	Again func(now pd.View) Component
	// Silent says that nothing is known of the database now: what was done to it
	// may still be in force.
	Silent bool
	// RollGate must be open before members that serve get a new revision: the
	// groups that come before this one in an upgrade are done.
	RollGate gate.Result
	// SuspendWait says what must have stopped before this group's pods may;
	// empty if nothing.
	SuspendWait string
	// Budget of the cluster's members of this component; nil for none.
	Budget *policyv1.PodDisruptionBudget
	// Extra is how many members there are to be beyond spec.replicas for now, in
	// place of members that do not serve.
	Extra int32
	// Spread is how the members lie over the places that spec.rebalance names.
	Spread Spread
	// Surge is how many more there may be, so that members that serve can be
	// restarted without being missed.
	Surge int32
}

// Plan is what a group's operator will do, and why.
type Plan struct {
	// Services, ConfigMap and Revision to apply, in this order; ConfigMap and
	// Revision are nil when they are stored already.
	Services  []*corev1.Service
	ConfigMap *corev1.ConfigMap
	Revision  *appsv1.ControllerRevision
	// Budget to apply, nil for none.
	Budget *policyv1.PodDisruptionBudget
	// Instances to apply, with the live object of each.
	Instances []InstanceChange
	// Lease to take or to give back.
	Lease LeaseChange
	// Question that PD has to answer before the plan can go on; nil for none.
	Question *RegionQuestion
	// Calls to PD, in this order.
	Calls []Call
	// Deletes are Instances to delete, because their member has left or will
	// never come back.
	Deletes []*v1alpha1.Instance
	// Drained are the Instances whose member has left the database, Waiting why
	// those that were deleted and need the Lease are still there.
	Drained map[string]bool
	Waiting map[string]string
	// Prune are revisions and ConfigMaps that nothing uses any more.
	Prune []client.Object
	// Unsafe is the first member that is not disrupted because Safe says so; nil if
	// there is none.
	Unsafe *Disruption
	// Target is the revision that is wanted.
	Target revision.Target
	// Changes says what of the target is not as in the revision that was wanted so far;
	// empty if that is the same, or not known any more.
	Changes string
	// Gate that the group stands before.
	Gate gate.Result
	// Gifts are configurations that running members are to be given, Settings what
	// such members still lack of theirs, for the component to tell.
	Gifts    []Gift
	Settings step.Outcome
	// Evictions are orders to PD for members that are to lead nothing because a person
	// asks, or to lead again because he does not any more. They come last: nobody waits
	// for what becomes of them.
	Evictions []Call
	// Evicting is what members still lead that are to lead nothing, or may lead again,
	// for the component to tell after everything else: it holds nobody's roll up.
	Evicting step.Outcome
	// Outcome is why the group is not what its spec asks for.
	Outcome step.Outcome
	// Notes say why, one for each decision.
	Notes []string

	// disrupted are the Instances that are under way, granted those whose pod may
	// stop now, released those that may go for good.
	disrupted map[string]Verb
	granted   map[string]bool
	released  map[string]bool
	// suspended are those whose pod has to stop before they are known to have
	// left.
	suspended map[string]bool
	// taking says that a change is being given to running members: until they have
	// shown that it is good nobody is made with it.
	taking bool
	// unanswered is an Instance that has yet to say that it leads nothing, or not any
	// more.
	unanswered string
	// files of the revisions that are stored, once they were needed.
	files stored
	// rechecks are to pass before anything of the plan stops a member.
	rechecks []recheck
}

// InstanceChange is an Instance to create or update.
type InstanceChange struct {
	// Desired Instance.
	Desired *v1alpha1.Instance
	// Live Instance, nil if it is to be created.
	Live *v1alpha1.Instance
	// Stops says that the change is the permission to stop a pod that serves.
	Stops bool
	// Rolls says that the change brings a new revision to a group whose members
	// serve at an old one.
	Rolls bool
}

// MakePlan plans the children of a group. It is pure.
func MakePlan(g v1alpha1.Group, s Snapshot, r Rendering) (Plan, error) {
	plan := Plan{Gate: r.Gate, Settings: step.Done(), Evicting: step.Done(), Drained: map[string]bool{}, Waiting: map[string]string{}, disrupted: map[string]Verb{}, granted: map[string]bool{}, released: map[string]bool{}, suspended: map[string]bool{}}
	spec := g.GetComponentSpec()
	r.Problems = append(slices.Clone(r.Problems), CheckDisruption(spec.Disruption)...)
	switch {
	case g.GetDeletionTimestamp() != nil:
		// Owner references let go of everything; the Instances' own finalizers
		// stop the pods and apply the claim retention.
		plan.Outcome = step.Wait("Instance", waitDeadline, v1alpha1.ReasonDeleting, fmt.Sprintf("%d Instances are still being deleted", len(s.Instances)))
		return plan, nil
	case len(r.Problems) > 0:
		plan.Outcome = step.Stall(v1alpha1.ReasonInvalidSpec, strings.Join(r.Problems, "; "))
		return plan, nil
	}
	if conflict := conflicts(g, s); conflict != "" {
		plan.Outcome = step.Stall(v1alpha1.ReasonNameConflict, conflict)
		plan.Outcome.After = lookAgain
		return plan, nil
	}
	target, err := resolve(s, r)
	if err != nil {
		return plan, err
	}
	plan.Target = target
	if was := g.GetGroupStatus().UpdateRevision; was != "" && was != target.Hash {
		plan.Changes = target.Since(was, s.Revisions)
	}
	var difference string
	if plan.Services, difference, err = KeptServices(g, s, r); err != nil {
		return plan, err
	}
	if plan.Target.NewRendering == "" {
		plan.Target.NewRendering = difference
	}
	plan.Budget = r.Budget
	if plan.ConfigMap, err = configMap(g, s, target); err != nil {
		return plan, err
	}
	if !target.Stored {
		if plan.Revision, err = revisionObject(g, target); err != nil {
			return plan, err
		}
	}
	if err := planInstances(&plan, g, s, r); err != nil {
		return plan, err
	}
	plan.Prune = prune(g, s, target)
	if spec.Paused {
		plan = paused(plan, g, s)
	}
	return plan, nil
}

// paused takes everything that would be done out of a plan and says what that
// is, if it is anything. A member that was being disrupted and is done gives the
// Lease back all the same: the rest of the cluster waits for it.
func paused(plan Plan, g v1alpha1.Group, s Snapshot) Plan {
	done := plan.Lease.Give && !slices.ContainsFunc(plan.Calls, func(c Call) bool { return s.Lease.Names(c.Instance) })
	held := len(plan.Notes) > 0 || plan.Revision != nil || len(plan.Calls) > 0 || len(plan.Deletes) > 0 || plan.Lease.Take != nil || len(plan.Drained) > 0
	plan.Services, plan.ConfigMap, plan.Revision, plan.Instances, plan.Budget = nil, nil, nil, nil, nil
	plan.Calls, plan.Evictions, plan.Deletes, plan.Prune, plan.Question = nil, nil, nil, nil, nil
	plan.Gifts, plan.Settings = nil, step.Done()
	plan.Drained, plan.Waiting = map[string]bool{}, map[string]string{}
	plan.rechecks = slices.DeleteFunc(plan.rechecks, func(c recheck) bool { return !done || !s.Lease.Names(c.instance) })
	if !done {
		plan.Lease = LeaseChange{}
	}
	edit := origin.Of(g)
	message := fmt.Sprintf("paused: set %s to false to go on: %s", edit.Either("paused"), edit.Edit())
	plan.pausedEvictions(message)
	if !held {
		return plan
	}
	if len(plan.Notes) > 0 {
		message += "; next: " + plan.Notes[0]
	} else if plan.Outcome.Message != "" {
		message += "; next: " + plan.Outcome.Message
	}
	plan.Outcome = step.Wait(g.GroupKind(), waitDeadline, v1alpha1.ReasonPaused, message)
	return plan
}

// resolve finds the wanted revision.
func resolve(s Snapshot, r Rendering) (revision.Target, error) {
	raw, err := json.Marshal(r.Inputs)
	if err != nil {
		return revision.Target{}, fmt.Errorf("encode the spec: %w", err)
	}
	inputs, err := hash(raw)
	if err != nil {
		return revision.Target{}, err
	}
	return revision.Resolve(revision.Record{Inputs: inputs, Template: r.Template, Files: r.Files}, s.Revisions)
}

// conflicts names an object of one of the group's names that is somebody
// else's.
func conflicts(g v1alpha1.Group, s Snapshot) string {
	for _, name := range slices.Sorted(maps.Keys(s.Services)) {
		service := s.Services[name]
		if !Ours(g, service) {
			return fmt.Sprintf("Service %s exists and belongs to somebody else: delete it (kubectl -n %s delete service %s) or give the group another name", name, g.GetNamespace(), name)
		}
	}
	return ""
}

// Ours reports whether an object was made by this group. One that was orphaned
// by a group of the same name is taken over.
func Ours(g v1alpha1.Group, o metav1.Object) bool {
	if owner := metav1.GetControllerOf(o); owner != nil {
		return owner.UID == g.GetUID()
	}
	return o.GetLabels()[v1alpha1.LabelManagedBy] == v1alpha1.ManagedBy && o.GetLabels()[v1alpha1.LabelComponent] == g.Component()
}

// configMap returns the ConfigMap of a target unless it exists already. It is
// immutable and named after its content.
func configMap(g v1alpha1.Group, s Snapshot, target revision.Target) (*corev1.ConfigMap, error) {
	name, err := ConfigMapName(g.GetName(), target.Files)
	if err != nil || s.ConfigMaps[name] {
		return nil, err
	}
	return &corev1.ConfigMap{ObjectMeta: workload.Meta(g, name), Data: target.Files, Immutable: ptr.To(true)}, nil
}

func revisionObject(g v1alpha1.Group, target revision.Target) (*appsv1.ControllerRevision, error) {
	object, err := target.Object(g.GetName(), g.GetNamespace(), workload.Labels(g))
	if err != nil {
		return nil, err
	}
	object.OwnerReferences = []metav1.OwnerReference{workload.Owner(g)}
	return object, nil
}

// planInstances decides for every slot: create, keep, change in place, restart,
// remove, or say what is pending.
func planInstances(plan *Plan, g v1alpha1.Group, s Snapshot, r Rendering) error {
	spec := g.GetComponentSpec()
	living, err := survey(plan, g, s, r)
	if err != nil {
		return err
	}
	r.Extra += planReplacements(g, s, r)
	more, marks, rebalance := planRebalance(g, s, r, living, plan.Target.Hash)
	r.Extra += more
	surge := planSurge(plan, g, s, r, living)
	leaving := planRemoval(g, s, r, surge, plan.Target.Hash)
	if !spec.Suspended {
		due := work(plan, r, living, leaving)
		plan.Outcome = step.Worst(plan.Outcome, withWord(plan, s, planDisruptions(plan, g, s, r, due, leaving)), leaving.waiting)
		tell(plan, g, s, r, due)
	}
	drain(plan, r, leaving)
	if spec.Suspended {
		changeAtRest(plan, living)
		rest(plan, g, s, r)
	} else {
		bury(plan, s, r, leaving)
	}
	marked := beyond(g, s, r, surge, leaving)
	for _, m := range living {
		change := m.change(plan, g, r, leaving, marked)
		if by := m.live.Annotations[v1alpha1.AnnotationRebalance]; by != "" && marks {
			setAnnotation(change.Desired, v1alpha1.AnnotationRebalance, by)
		}
		plan.Instances = append(plan.Instances, change)
		switch _, under := plan.disrupted[m.live.Name]; {
		case under:
		case begun(m.live):
			plan.Calls = append(plan.Calls, r.Disrupt.Sweep(m.live)...)
		default:
			plan.Evictions = append(plan.Evictions, r.Disrupt.Sweep(m.live)...)
		}
	}
	if s.HolderLost && s.Lease.Holder.Kind == g.GroupKind() && plan.Lease.Take == nil && s.astray(nil) == "" {
		plan.Lease = LeaseChange{Give: true, Why: "its holder is gone"}
		plan.recheckForgotten(s)
	}
	slots, extra := planSlots(g, s, r, surge)
	create := slices.Concat(slots, extra)
	creating := ""
	if slot, awaited := s.awaited(g); spec.Suspended && awaited && slices.Contains(slots, slot) {
		if err := planHeir(plan, g, r, slot); err != nil {
			return err
		}
	}
	if len(create) > 0 && !spec.Suspended {
		creating = fmt.Sprintf("creating %d of %d Instances", len(create), g.GetReplicas()+r.Extra+surge)
	}
	if creating != "" && r.Gate.Open {
		if r.CreateLimit != nil {
			if limit, limited := r.CreateLimit(); limit < len(create) {
				create, creating = create[:limit], creating+": "+limited
			}
		}
		old, err := running(plan, g, s)
		if err != nil {
			return err
		}
		ahead := plan.foreseen(s)
		for _, slot := range create {
			desired, err := newcomer(plan, g, ahead, r, old, slot, slices.Contains(extra, slot))
			if err != nil {
				return err
			}
			if more > 0 && Newcomer(g, ahead.Instances) == nil {
				setAnnotation(desired, v1alpha1.AnnotationRebalance, r.Spread.By)
			}
			ahead.Instances = append(ahead.Instances, desired)
			plan.Instances = append(plan.Instances, InstanceChange{Desired: desired, Rolls: old != nil && desired.Spec.Revision == plan.Target.Hash})
			plan.Notes = append(plan.Notes, fmt.Sprintf("create Instance %s: %d of %d exist", desired.Name, len(s.Instances), g.GetReplicas()+r.Extra+surge))
		}
	}
	plan.Outcome = foremost(waits(plan, g, s, r, creating), plan.Outcome, step.Worst(volumeChange(g, s, r), replacement(g, s, r), rebalance))
	return nil
}

// foremost is the worst of what the members say, of what holds a disruption up, and of
// how far volumes are. What goes on beside a roll hides none of what holds that up.
func foremost(members, disruptions, volumes step.Outcome) step.Outcome {
	if beside(members.Reason) {
		return step.Worst(disruptions, members, volumes)
	}
	return step.Worst(members, disruptions, volumes)
}

// waits says why the group is not yet what its spec asks for.
func waits(plan *Plan, g v1alpha1.Group, s Snapshot, r Rendering, creating string) step.Outcome {
	wait := func(source, reason, message string) step.Outcome {
		return step.Wait(source, waitDeadline, reason, message)
	}
	if creating != "" && !r.Gate.Open {
		return wait("PDGroup", r.GateReason, r.Gate.Message)
	}
	if o := unready(plan, g, s, r); o.Kind != step.KindDone {
		return o
	}
	if creating != "" {
		return wait("Instance", v1alpha1.ReasonCreating, creating)
	}
	if plan.Target.NewRendering != "" {
		return wait(g.GroupKind(), v1alpha1.ReasonNewRendering, "this operator would render pods or Services differently, and leaves them as they are until the spec changes: "+plan.Target.NewRendering)
	}
	return step.Done()
}

// unready passes on the most telling reason of an Instance that is not Ready. How
// far one of the group is on its way out is told elsewhere; one of another group that
// had its name stands in the way until it has gone.
func unready(plan *Plan, g v1alpha1.Group, s Snapshot, r Rendering) step.Outcome {
	if g.GetComponentSpec().Suspended {
		for _, i := range s.Instances {
			switch {
			case i.Status.PodUID == "":
			case r.SuspendWait != "" && !i.Spec.Suspended:
				return step.Wait("Instance", waitDeadline, v1alpha1.ReasonSuspended, fmt.Sprintf("pod %s still runs: %s", i.Name, r.SuspendWait))
			default:
				return step.Wait("Instance", waitDeadline, v1alpha1.ReasonSuspended, fmt.Sprintf("pod %s is still stopping", i.Name))
			}
		}
		return step.Done()
	}
	worst := step.Done()
	for _, i := range s.Instances {
		own := Ours(g, i)
		if own && (i.Spec.Retire || i.DeletionTimestamp != nil && held(i)) || plan.disrupted[i.Name] == Remove || slices.Contains(plan.Deletes, i) {
			continue
		}
		o := InstanceOutcome(i)
		if o.Reason == v1alpha1.ReasonWaitingForInstances {
			if o.After = gate.Patience; s.Silent[i.UID] {
				o.After, o.Message = waitDeadline, o.Message+": is it running?"
			}
		}
		switch {
		case !own:
			o = step.Wait("Instance", waitDeadline, v1alpha1.ReasonDeleting, "Instance "+i.Name+" is that of another group of this name, and is made anew when it has gone with it: kubectl -n "+i.Namespace+" describe instance "+i.Name)
		case left(i):
			o = step.Wait("Instance", waitDeadline, v1alpha1.ReasonDeleting, "Instance "+i.Name+" is being deleted: its member has left, and its pod has yet to stop: kubectl -n "+i.Namespace+" describe instance "+i.Name)
		case i.DeletionTimestamp != nil:
			o = step.Wait("Instance", waitDeadline, v1alpha1.ReasonDeleting, "Instance "+i.Name+" is being deleted, and made anew then")
		}
		if telling(o) > telling(worst) {
			worst = o
		}
	}
	return worst
}

// InstanceOutcome tells from an Instance's conditions whether it is what its
// spec asks for, and if not, why.
func InstanceOutcome(i *v1alpha1.Instance) step.Outcome {
	if stalled := gate.Current(i.Status.Conditions, i.Generation, v1alpha1.ConditionStalled); stalled != nil {
		return step.Wait("Instance", waitDeadline, stalled.Reason, "Instance "+i.Name+": "+stalled.Message)
	}
	ready := gate.Current(i.Status.Conditions, i.Generation, v1alpha1.ConditionReady)
	if ready == nil {
		return step.Wait("Instance", waitDeadline, v1alpha1.ReasonWaitingForInstances, "Instance "+i.Name+" has no current condition Ready: the instance operator has yet to look at it")
	}
	if ready.Status == metav1.ConditionTrue {
		upToDate := gate.Current(i.Status.Conditions, i.Generation, v1alpha1.ConditionUpToDate)
		if upToDate == nil || upToDate.Status == metav1.ConditionTrue {
			return step.Done()
		}
		ready = upToDate
	}
	return step.Wait("Instance", waitDeadline, ready.Reason, "Instance "+i.Name+": "+ready.Message)
}

// onItsWay ranks what every member says that starts.
const onItsWay = 2

// telling ranks reasons by how much they tell a person.
func telling(o step.Outcome) int {
	switch {
	case o.Kind == step.KindDone:
		return 0
	case o.Reason == v1alpha1.ReasonWaitingForInstances:
		return 1
	case o.Reason == v1alpha1.ReasonPodMissing, o.Reason == v1alpha1.ReasonPodPending, o.Reason == v1alpha1.ReasonPodNotReady,
		o.Reason == v1alpha1.ReasonGatesPending, o.Reason == v1alpha1.ReasonProgressing, o.Reason == v1alpha1.ReasonClaimPending:
		return onItsWay
	default:
		return onItsWay + 1
	}
}

// newInstance renders the Instance of a slot.
func newInstance(g v1alpha1.Group, r Rendering, target revision.Target, slot int32) (*v1alpha1.Instance, error) {
	spec := g.GetComponentSpec()
	template := target.Template.DeepCopy()
	if r.Adjust != nil {
		r.Adjust(slot, template)
	}
	raw, err := json.Marshal(template)
	if err != nil {
		return nil, fmt.Errorf("encode the template of slot %d: %w", slot, err)
	}
	i := &v1alpha1.Instance{ObjectMeta: workload.Meta(g, names.Instance(g.GetName(), slot))}
	if owner := metav1.GetControllerOf(g); owner != nil && owner.Kind == v1alpha1.KindTidbCluster {
		i.Labels[v1alpha1.LabelUmbrella] = owner.Name // what its messages have a person edit
	}
	i.Finalizers = []string{v1alpha1.FinalizerMember}
	i.Spec = v1alpha1.InstanceSpec{
		Group:                v1alpha1.InstanceGroup{Kind: g.GroupKind(), Name: g.GetName()},
		Slot:                 slot,
		Revision:             target.Hash,
		PodTemplate:          runtime.RawExtension{Raw: raw},
		VolumeClaimTemplates: workload.Claims(spec),
		ReadinessGates:       r.ReadinessGates,
		Suspended:            spec.Suspended,
		ClaimRetention:       spec.PersistentVolumeClaimRetentionPolicy,
		ClaimLoss:            r.ClaimLoss,
	}
	return i, nil
}
