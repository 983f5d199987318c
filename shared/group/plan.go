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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/gate"
	"github.com/tidb-groups/tidb-groups/shared/names"
	"github.com/tidb-groups/tidb-groups/shared/revision"
	"github.com/tidb-groups/tidb-groups/shared/rollout"
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
	// Services of the group.
	Services []*corev1.Service
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
	// CreateLimit bounds how many members are created at once, and says why;
	// nil means no bound.
	CreateLimit func() (limit int, reason string)
	// Safe says why a living member must not be stopped now; empty if it may.
	Safe func(instance *v1alpha1.Instance) string
}

// Plan is what a group's operator will do, and why.
type Plan struct {
	// Services, ConfigMap and Revision to apply, in this order; ConfigMap and
	// Revision are nil when they are stored already.
	Services  []*corev1.Service
	ConfigMap *corev1.ConfigMap
	Revision  *appsv1.ControllerRevision
	// Instances to apply, with the live object of each.
	Instances []InstanceChange
	// Target is the revision that is wanted.
	Target revision.Target
	// Gate that the group stands before.
	Gate gate.Result
	// Outcome is why the group is not what its spec asks for.
	Outcome step.Outcome
	// Notes say why, one for each decision.
	Notes []string
}

// InstanceChange is an Instance to create or update.
type InstanceChange struct {
	// Desired Instance.
	Desired *v1alpha1.Instance
	// Live Instance, nil if it is to be created.
	Live *v1alpha1.Instance
}

// MakePlan plans the children of a group. It is pure.
func MakePlan(g v1alpha1.Group, s Snapshot, r Rendering) (Plan, error) {
	plan := Plan{Gate: r.Gate}
	spec := g.GetComponentSpec()
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
	plan.Services = r.Services
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
	if spec.Paused {
		plan = paused(plan, g)
	}
	return plan, nil
}

// paused takes everything that would be done out of a plan and says what that
// is, if it is anything.
func paused(plan Plan, g v1alpha1.Group) Plan {
	held := len(plan.Notes) > 0 || plan.Revision != nil
	plan.Services, plan.ConfigMap, plan.Revision, plan.Instances = nil, nil, nil, nil
	if !held {
		return plan
	}
	message := "paused: set spec.paused to false to go on"
	if len(plan.Notes) > 0 {
		message += "; next: " + plan.Notes[0]
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

// planInstances decides for every slot: create, keep, change in place, replace
// what adds nothing, or say what is pending.
func planInstances(plan *Plan, g v1alpha1.Group, s Snapshot, r Rendering) error {
	spec := g.GetComponentSpec()
	var filled []int32
	var pending []string
	for _, live := range s.Instances {
		filled = append(filled, live.Spec.Slot)
		if live.DeletionTimestamp != nil || !Ours(g, live) {
			continue
		}
		desired, wait, err := planInstance(plan, g, r, live)
		if err != nil {
			return err
		}
		if wait != "" {
			pending = append(pending, wait)
		}
		plan.Instances = append(plan.Instances, InstanceChange{Desired: desired, Live: live})
	}
	slots := rollout.PlanSlots(filled, g.GetReplicas(), nil)
	creating := len(slots.Create) > 0 && !spec.Suspended
	if creating && r.Gate.Open {
		create, limited := slots.Create, ""
		if r.CreateLimit != nil {
			var limit int
			limit, limited = r.CreateLimit()
			create = create[:min(limit, len(create))]
		}
		if len(create) < len(slots.Create) {
			pending = append(pending, limited)
		}
		for _, slot := range create {
			desired, err := newInstance(g, r, plan.Target, slot)
			if err != nil {
				return err
			}
			plan.Instances = append(plan.Instances, InstanceChange{Desired: desired})
			plan.Notes = append(plan.Notes, fmt.Sprintf("create Instance %s: %d of %d exist", desired.Name, len(s.Instances), g.GetReplicas()))
		}
	}
	plan.Outcome = step.Worst(plan.Outcome, waits(g, s, r, plan.Target, slots, pending, creating))
	return nil
}

// waits says why the group is not yet what its spec asks for.
func waits(g v1alpha1.Group, s Snapshot, r Rendering, target revision.Target, slots rollout.Slots, pending []string, creating bool) step.Outcome {
	wait := func(source, reason, message string) step.Outcome {
		return step.Wait(source, waitDeadline, reason, message)
	}
	if creating && !r.Gate.Open {
		return wait("PDGroup", r.GateReason, r.Gate.Message)
	}
	if o := unready(g, s); o.Kind != step.KindDone {
		return o
	}
	if creating {
		message := fmt.Sprintf("creating %d of %d Instances", len(slots.Create), g.GetReplicas())
		if len(pending) > 0 {
			message += ": " + pending[0]
		}
		return wait("Instance", v1alpha1.ReasonCreating, message)
	}
	volume := volumeChange(g, s)
	switch {
	case len(pending) > 0:
		return wait("Instance", v1alpha1.ReasonRestartPending, pending[0])
	case volume != "":
		return wait("Instance", v1alpha1.ReasonVolumeChangePending, volume)
	case len(slots.Surplus) > 0:
		return wait("Instance", v1alpha1.ReasonScaleInPending, fmt.Sprintf("%d Instances more than spec.replicas %d: this version does not remove members; set spec.replicas back to %d",
			len(slots.Surplus), g.GetReplicas(), len(s.Instances)))
	case target.NewRendering != "":
		return wait(g.GroupKind(), v1alpha1.ReasonNewRendering, "this operator would render the pods differently, and leaves them as they are until the spec changes: "+target.NewRendering)
	}
	return step.Done()
}

// volumeChange names a volume that has another StorageClass than the spec asks
// for: a volume cannot move.
func volumeChange(g v1alpha1.Group, s Snapshot) string {
	for _, wanted := range g.GetComponentSpec().Volumes {
		for _, i := range s.Instances {
			for _, v := range i.Status.Volumes {
				if v.Name == wanted.Name && wanted.StorageClassName != nil && v.StorageClassName != "" && v.StorageClassName != *wanted.StorageClassName {
					return fmt.Sprintf("volume %s of Instance %s has StorageClass %s, spec.volumes says %s: this version does not move volumes; set it back to %s",
						v.Name, i.Name, v.StorageClassName, *wanted.StorageClassName, v.StorageClassName)
				}
			}
		}
	}
	return ""
}

// unready passes on the most telling reason of an Instance that is not Ready.
func unready(g v1alpha1.Group, s Snapshot) step.Outcome {
	if g.GetComponentSpec().Suspended {
		for _, i := range s.Instances {
			if i.Status.PodUID != "" {
				return step.Wait("Instance", waitDeadline, v1alpha1.ReasonSuspended, fmt.Sprintf("pod %s is still stopping", i.Name))
			}
		}
		return step.Done()
	}
	worst := step.Done()
	for _, i := range s.Instances {
		o := InstanceOutcome(i)
		if i.DeletionTimestamp != nil {
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
		return step.Wait("Instance", waitDeadline, v1alpha1.ReasonWaitingForInstances, "Instance "+i.Name+" has no current condition Ready: is the instance operator running?")
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

// telling ranks reasons by how much they tell a person.
func telling(o step.Outcome) int {
	switch {
	case o.Kind == step.KindDone:
		return 0
	case o.Reason == v1alpha1.ReasonWaitingForInstances:
		return 1
	case o.Reason == v1alpha1.ReasonPodMissing, o.Reason == v1alpha1.ReasonPodPending, o.Reason == v1alpha1.ReasonPodNotReady,
		o.Reason == v1alpha1.ReasonGatesPending, o.Reason == v1alpha1.ReasonProgressing, o.Reason == v1alpha1.ReasonClaimPending:
		return 2
	default:
		return 3
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

// grown returns claims with the sizes that are wanted where they are larger: a
// volume grows without a restart.
func grown(claims, wanted []v1alpha1.VolumeClaimTemplate) []v1alpha1.VolumeClaimTemplate {
	out := slices.Clone(claims)
	for i := range out {
		for _, w := range wanted {
			if w.Name == out[i].Name && w.Storage.Cmp(out[i].Storage) > 0 {
				out[i].Storage = w.Storage
			}
		}
	}
	return out
}

// planInstance decides what becomes of a living Instance: the new revision when
// it may have it, else its own, and then a word on what is pending.
func planInstance(plan *Plan, g v1alpha1.Group, r Rendering, live *v1alpha1.Instance) (*v1alpha1.Instance, string, error) {
	desired, err := newInstance(g, r, plan.Target, live.Spec.Slot)
	if err != nil {
		return nil, "", err
	}
	if live.Spec.Revision == plan.Target.Hash {
		return desired, "", nil
	}
	var old corev1.PodTemplateSpec
	if err := json.Unmarshal(live.Spec.PodTemplate.Raw, &old); err != nil {
		return nil, "", fmt.Errorf("decode template of Instance %s: %w", live.Name, err)
	}
	wanted, kept := plan.Target.Template.DeepCopy(), live.Spec.PodTemplate
	if r.Adjust != nil {
		// What makes no revision is no reason for a restart either, and is
		// changed while a restart is pending too.
		r.Adjust(live.Spec.Slot, wanted)
		r.Adjust(live.Spec.Slot, &old)
		if kept.Raw, err = json.Marshal(old); err != nil {
			return nil, "", fmt.Errorf("encode template of Instance %s: %w", live.Name, err)
		}
	}
	change := revision.Difference(&old, wanted)
	if !change.Restart {
		plan.Notes = append(plan.Notes, fmt.Sprintf("change Instance %s in place: %s", live.Name, change.Text))
		return desired, "", nil
	}
	if reason := r.Safe(live); reason != "" {
		// The living member keeps what it runs.
		desired.Spec.Revision = live.Spec.Revision
		desired.Spec.PodTemplate = kept
		desired.Spec.VolumeClaimTemplates = grown(live.Spec.VolumeClaimTemplates, desired.Spec.VolumeClaimTemplates)
		note := fmt.Sprintf("Instance %s needs a restart (%s): %s", live.Name, change.Text, reason)
		plan.Notes = append(plan.Notes, note)
		return desired, note, nil
	}
	plan.Notes = append(plan.Notes, fmt.Sprintf("replace the pod of Instance %s: %s", live.Name, change.Text))
	return desired, "", nil
}
