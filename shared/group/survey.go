package group

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/revision"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// resident is a living Instance and the two things that may become of it.
type resident struct {
	live *v1alpha1.Instance
	// kept is the Instance with the pod that it has, wanted the one with the pod
	// that it is to have. They are the same object if no restart lies between.
	kept, wanted *v1alpha1.Instance
	// restart says why a restart is wanted; empty if none is.
	restart string
	// again says that the restart changes nothing of the pod.
	again bool
	// taking says that the running member is being given another revision's
	// configuration, without a restart.
	taking bool
}

// wasDeleted is why a member is disrupted whose Instance somebody deletes.
const wasDeleted = "it was deleted"

// survey looks at every Instance of the group that it has a say in and returns
// it with what may become of it. One that is being deleted can only be let go.
func survey(plan *Plan, g v1alpha1.Group, s Snapshot, r Rendering) ([]resident, error) {
	var living []resident
	for _, i := range s.Instances {
		switch {
		case !Ours(g, i):
		case i.DeletionTimestamp == nil:
			m, err := inspect(plan, g, s, r, i)
			if err != nil {
				return nil, err
			}
			living = append(living, m)
		case held(i) && r.Disrupt.Restarted(i):
			living = append(living, resident{live: i, restart: wasDeleted})
		case held(i):
			living = append(living, resident{live: i})
		}
	}
	return living, nil
}

// work returns what would stop members: restarts and removals.
func work(plan *Plan, r Rendering, living []resident, leaving removal) []Disruption {
	var out []Disruption
	for _, m := range living {
		victim, leaves := leaving.victims[m.live.Name]
		if leaves && r.Disrupt.Leased(victim) {
			out = append(out, victim)
		}
		if m.restart != "" && (!leaves || r.Disrupt.Spare(m.live)) {
			out = append(out, Disruption{Instance: m.live, Verb: Restart, Why: m.restart, Revision: plan.Target.Hash})
		}
	}
	return out
}

// inspect compares a living Instance with what it is to be.
func inspect(plan *Plan, g v1alpha1.Group, s Snapshot, r Rendering, live *v1alpha1.Instance) (resident, error) {
	wanted, err := newInstance(g, r, plan.Target, live.Spec.Slot)
	if err != nil {
		return resident{}, err
	}
	carry(wanted, live)
	wanted.Spec.VolumeClaimTemplates = lasting(asWished(g, wanted.Spec.VolumeClaimTemplates, live), live)
	suspend(wanted, live, r)
	m := resident{live: live, kept: wanted, wanted: wanted}
	if live.Spec.Revision != plan.Target.Hash {
		if err := m.compare(plan, g, s, r); err != nil {
			return m, err
		}
	}
	if err := m.retain(plan, s, r); err != nil {
		return m, err
	}
	plan.taking = plan.taking || m.taking
	if why := asked(s, live); m.restart == "" && why != "" && live.Status.PodUID != "" {
		// The pod stays as it is and is started anew.
		m.restart, m.again = why, true
		m.wanted = m.kept.DeepCopy()
		m.wanted.Spec.StopPod = live.Status.PodUID
	}
	if m.restart == "" && forgone(s, live) {
		plan.Notes = append(plan.Notes, fmt.Sprintf("keep the pod of Instance %s: nobody asks any more for it to be started anew", live.Name))
		m.kept.Spec.StopPod = ""
	}
	if answer := live.Annotations[v1alpha1.AnnotationRestart]; answer != "" && m.restart != "" {
		setAnnotation(m.wanted, v1alpha1.AnnotationRestarted, answer)
	}
	return m, nil
}

// compare finds out whether another revision needs a restart.
func (m *resident) compare(plan *Plan, g v1alpha1.Group, s Snapshot, r Rendering) error {
	live := m.live
	var old corev1.PodTemplateSpec
	if err := json.Unmarshal(live.Spec.PodTemplate.Raw, &old); err != nil {
		return fmt.Errorf("decode template of Instance %s: %w", live.Name, err)
	}
	wanted, kept := plan.Target.Template.DeepCopy(), live.Spec.PodTemplate
	if r.Adjust != nil {
		// What makes no revision is no reason for a restart either, and is
		// changed while a restart is pending too.
		r.Adjust(live.Spec.Slot, wanted)
		r.Adjust(live.Spec.Slot, &old)
		var err error
		if kept.Raw, err = json.Marshal(old); err != nil {
			return fmt.Errorf("encode template of Instance %s: %w", live.Name, err)
		}
	}
	change := revision.Difference(&old, wanted)
	if !change.Restart {
		plan.Notes = append(plan.Notes, fmt.Sprintf("change Instance %s in place: %s", live.Name, change.Text))
		return nil
	}
	// Until then the living member keeps what it runs.
	m.kept = m.wanted.DeepCopy()
	m.kept.Spec.Revision = live.Spec.Revision
	m.kept.Spec.PodTemplate = kept
	m.kept.Spec.VolumeClaimTemplates = online(live.Spec.VolumeClaimTemplates, m.kept.Spec.VolumeClaimTemplates)
	m.wanted.Spec.InPlaceFrom = ""
	if live.Spec.InPlaceFrom != "" && live.Status.Revision != live.Spec.Revision {
		// The pod may still be called by the very revision that is wanted again,
		// and its member runs with another configuration all the same.
		m.wanted.Spec.StopPod = live.Status.PodUID
		// Should nobody let that pod stop, it is seen by this what its member runs with.
		setAnnotation(m.wanted, v1alpha1.AnnotationGiven, strings.Join(append([]string{string(live.Status.PodUID)}, append(given(live), live.Spec.Revision)...), " "))
	}
	var err error
	m.restart, err = m.take(plan, g, s, r, &old, wanted, change.Text)
	return err
}

// change is what becomes of a resident by what the plan has decided.
func (m resident) change(plan *Plan, g v1alpha1.Group, r Rendering, leaving removal, marked map[string]bool) InstanceChange {
	name := m.live.Name
	eviction := plan.evict(g, r, m.live)
	if m.live.DeletionTimestamp != nil {
		stops := plan.released[name] && plan.disrupted[name] == Restart && !r.Disrupt.Spare(m.live)
		return InstanceChange{Live: m.live, Desired: parting(m.live, plan, g, r, eviction), Stops: stops}
	}
	out := InstanceChange{Live: m.live, Desired: m.kept}
	if plan.granted[name] {
		out.Desired, out.Stops = m.wanted, !r.Disrupt.Spare(m.live)
		out.Rolls = out.Stops && m.live.Spec.Revision != m.wanted.Spec.Revision
	} else if m.restart != "" {
		plan.Outcome = step.Worst(plan.Outcome, step.Wait("Instance", waitDeadline, v1alpha1.ReasonRestartPending, fmt.Sprintf("Instance %s needs a restart: %s", name, m.restart)))
	}
	mark(out.Desired, m.live, plan, r, eviction)
	answer(out.Desired, m.live, eviction)
	if m.live.Annotations[v1alpha1.AnnotationDisruption] != "" && out.Desired.Annotations[v1alpha1.AnnotationDisruption] == "" {
		plan.recheckSwept(g, r, m.live)
	}
	if marked[name] {
		setAnnotation(out.Desired, v1alpha1.AnnotationSurge, surgeOn)
	}
	if d, leaves := leaving.victims[name]; leaves && (!r.Disrupt.Leased(d) || plan.disrupted[name] == Remove) {
		out.Desired.Spec.Retire = true
	} else if m.live.Spec.Retire {
		plan.Notes = append(plan.Notes, fmt.Sprintf("keep Instance %s: it is not to leave any more", name))
	}
	return out
}

// changeAtRest lets members of a suspended group have a new revision: those whose
// pod has stopped are not restarted by it, and would wait for a restart for ever.
func changeAtRest(plan *Plan, living []resident) {
	for _, m := range living {
		if m.restart == "" || !m.live.Spec.Suspended || m.live.Status.PodUID != "" {
			continue
		}
		plan.permit(m.live)
		plan.Notes = append(plan.Notes, fmt.Sprintf("change Instance %s, which is suspended: %s", m.live.Name, m.restart))
	}
}

// parting is a deleted Instance as it is to be until it has gone: nothing of it
// changes but the finalizer, when its member has left, and whether its pod runs: a
// suspended group stops it like the others, and the member leaves when the group is
// resumed.
func parting(live *v1alpha1.Instance, plan *Plan, g v1alpha1.Group, r Rendering, eviction Eviction) *v1alpha1.Instance {
	desired := &v1alpha1.Instance{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: live.Namespace, Name: live.Name, Labels: live.Labels, OwnerReferences: live.OwnerReferences,
			Finalizers: []string{v1alpha1.FinalizerMember},
		},
		Spec: *live.Spec.DeepCopy(),
	}
	desired.Spec.Suspended = g.GetComponentSpec().Suspended
	suspend(desired, live, r)
	mark(desired, live, plan, r, eviction)
	if plan.released[live.Name] {
		desired.Finalizers = nil
	}
	return desired
}

// mark writes on an Instance what is being done to its member, or leaves the mark
// of what is still to be taken back, or cannot be any more. A pod that has to stop
// before its member is known to have left is suspended. What has ended of a member that
// is to lead nothing leaves the mark of that, by which it is known later what to take
// back.
func mark(desired, live *v1alpha1.Instance, plan *Plan, r Rendering, eviction Eviction) {
	before := Verb(live.Annotations[v1alpha1.AnnotationDisruption])
	left := before != "" && (r.Silent || unfinished(r.Disrupt, live))
	switch verb, under := plan.disrupted[live.Name]; {
	case under:
		setAnnotation(desired, v1alpha1.AnnotationDisruption, string(verb))
	case eviction.Marked && (!left || before != Remove):
		setAnnotation(desired, v1alpha1.AnnotationDisruption, string(Evict))
	case left:
		setAnnotation(desired, v1alpha1.AnnotationDisruption, string(before))
	}
	desired.Spec.Suspended = desired.Spec.Suspended || plan.suspended[live.Name]
}

// unfinished reports whether something that was begun with a member is still to be taken
// back, or cannot be any more.
func unfinished(c Component, i *v1alpha1.Instance) bool {
	return len(c.Sweep(i)) > 0 || c.Dead(i) != ""
}

// carry keeps what earlier plans have left on an Instance.
func carry(desired, live *v1alpha1.Instance) {
	desired.Spec.StopPod, desired.Spec.InPlaceFrom = live.Spec.StopPod, live.Spec.InPlaceFrom
	if answered := live.Annotations[v1alpha1.AnnotationRestarted]; answered != "" {
		setAnnotation(desired, v1alpha1.AnnotationRestarted, answered)
	}
}

// suspend puts the stopping or starting of a pod off until those that come
// before it are done.
func suspend(desired, live *v1alpha1.Instance, r Rendering) {
	switch {
	case desired.Spec.Suspended && r.SuspendWait != "":
		desired.Spec.Suspended = live.Spec.Suspended
	case !desired.Spec.Suspended && !r.Gate.Open:
		desired.Spec.Suspended = live.Spec.Suspended
	}
}

// asked says why an Instance's pod is to be started anew although nothing of it
// changes: a person asked for it, or its node is to be left. Empty if it is not.
// A pod whose volumes would not follow it stays where it is. Who has been permitted to
// stop is not asked again: what is safe was decided then, and the Lease is kept until it
// has been restarted or the permission is taken back.
func asked(s Snapshot, i *v1alpha1.Instance) string {
	if answer := i.Annotations[v1alpha1.AnnotationRestart]; answer != "" && answer != i.Annotations[v1alpha1.AnnotationRestarted] {
		return "annotation " + v1alpha1.AnnotationRestart + "=" + answer
	}
	if evacuates(s, i) && !condemned(i) {
		return "node " + i.Status.NodeName + " is cordoned"
	}
	return ""
}

// evacuates reports whether an Instance's pod is to leave its node, and its volumes
// would follow it.
func evacuates(s Snapshot, i *v1alpha1.Instance) bool {
	bound := slices.ContainsFunc(i.Status.Volumes, func(v v1alpha1.VolumeStatus) bool { return v.NodeBound || v.PersistentVolume == "" })
	return s.Cordoned[i.Status.NodeName] && !bound
}

func setAnnotation(i *v1alpha1.Instance, key, value string) {
	if i.Annotations == nil {
		i.Annotations = map[string]string{}
	}
	i.Annotations[key] = value
}

// bury deletes a member that will never come back, one at a time, so that it is
// replaced. One that a person has deleted may be waiting for just that.
func bury(plan *Plan, s Snapshot, r Rendering, leaving removal) {
	if leaving.scalesIn() || len(plan.Deletes) > 0 {
		return
	}
	for _, i := range s.Instances {
		if i.DeletionTimestamp != nil || plan.granted[i.Name] {
			continue // what is just being mended is not given up
		}
		if why := r.Disrupt.Dead(i); why != "" {
			plan.Deletes = append(plan.Deletes, i)
			plan.recheckDead(r, i)
			plan.Notes = append(plan.Notes, fmt.Sprintf("replace Instance %s: %s", i.Name, why))
			plan.Outcome = step.Worst(plan.Outcome, step.Wait("Instance", waitDeadline, v1alpha1.ReasonReplacing, fmt.Sprintf("Instance %s is replaced: %s", i.Name, why)))
			return
		}
	}
}
