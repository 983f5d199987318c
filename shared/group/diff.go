package group

import (
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/disruption"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/onlineconfig"
	"github.com/tidb-groups/tidb-groups/shared/planning"
	"github.com/tidb-groups/tidb-groups/shared/revision"
	"github.com/tidb-groups/tidb-groups/shared/scaling"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/verdict"
	"github.com/tidb-groups/tidb-groups/shared/workload"
)

// compareInstances compares every Instance that belongs to the group with its spec. One
// that is being deleted can only be released.
func compareInstances(in planning.Inputs) ([]planning.InstanceDiff, error) {
	var living []planning.InstanceDiff
	for _, i := range in.Snapshot.Instances {
		switch {
		case !workload.IsOwned(in.Group, i):
		case i.DeletionTimestamp == nil:
			m, err := compareInstance(in, i)
			if err != nil {
				return nil, err
			}
			living = append(living, m)
		case member.HasMemberFinalizer(i) && in.Rendering.Component.RestartsWhenDeleted(i):
			living = append(living, planning.InstanceDiff{Live: i, RestartReason: verdict.NewReason(planning.ReasonDeleted)})
		case member.HasMemberFinalizer(i):
			living = append(living, planning.InstanceDiff{Live: i})
		}
	}
	return living, nil
}

// pendingDisruptions returns what would stop members: restarts and removals.
func pendingDisruptions(in planning.Inputs, living []planning.InstanceDiff, leaving planning.Removal) []component.Disruption {
	var out []component.Disruption
	for _, m := range living {
		candidate, leaves := leaving.Candidates[m.Live.Name]
		if leaves && in.Rendering.Component.NeedsLease(candidate) {
			out = append(out, candidate)
		}
		if m.RestartReason.IsGiven() && (!leaves || in.Rendering.Component.IsNotServing(m.Live)) {
			out = append(out, component.Disruption{Instance: m.Live, Verb: member.Restart, Why: m.RestartReason.Text(), Revision: in.Target.Hash})
		}
	}
	return out
}

// compareInstance compares an Instance with what it is to be.
func compareInstance(in planning.Inputs, live *v1alpha1.Instance) (planning.InstanceDiff, error) {
	wanted, err := component.NewInstance(in.Group, in.Rendering, in.Target, live.Spec.Slot)
	if err != nil {
		return planning.InstanceDiff{}, err
	}
	preserveAnnotations(wanted, live)
	wanted.Spec.VolumeClaimTemplates = scaling.WithoutShrinking(scaling.KeepClaims(in.Group, wanted.Spec.VolumeClaimTemplates, live), live)
	deferSuspension(wanted, live, in.Rendering)
	m := planning.InstanceDiff{Live: live, Kept: wanted, Wanted: wanted}
	if live.Spec.Revision != in.Target.Hash {
		if err := compareRevision(&m, in); err != nil {
			return m, err
		}
	}
	if err := onlineconfig.KeepConfig(&m, in); err != nil {
		return m, err
	}
	if why := observation.RestartRequest(in.Snapshot, live); !m.RestartReason.IsGiven() && why.IsGiven() && live.Status.PodUID != "" {
		// The pod is restarted as it is.
		m.RestartReason, m.RestartOnly = why, true
		m.Wanted = m.Kept.DeepCopy()
		m.Wanted.Spec.StopPod = live.Status.PodUID
	}
	if !m.RestartReason.IsGiven() && observation.IsRestartWithdrawn(in.Snapshot, live) {
		m.Notes = append(m.Notes, fmt.Sprintf("keep the pod of Instance %s: its restart is no longer requested", live.Name))
		m.Kept.Spec.StopPod = ""
	}
	if answer := live.Annotations[v1alpha1.AnnotationRestart]; answer != "" && m.RestartReason.IsGiven() {
		member.SetAnnotation(m.Wanted, v1alpha1.AnnotationRestarted, answer)
	}
	return m, nil
}

// compareRevision finds out whether another revision needs a restart.
func compareRevision(m *planning.InstanceDiff, in planning.Inputs) error {
	live := m.Live
	var old corev1.PodTemplateSpec
	if err := json.Unmarshal(live.Spec.PodTemplate.Raw, &old); err != nil {
		return fmt.Errorf("decode template of Instance %s: %w", live.Name, err)
	}
	wanted, kept := in.Target.Template.DeepCopy(), live.Spec.PodTemplate
	if in.Rendering.AdjustTemplate != nil {
		// What makes no revision is no reason for a restart either, and is
		// changed while a restart is pending too.
		in.Rendering.AdjustTemplate(live.Spec.Slot, wanted)
		in.Rendering.AdjustTemplate(live.Spec.Slot, &old)
		var err error
		if kept.Raw, err = json.Marshal(old); err != nil {
			return fmt.Errorf("encode template of Instance %s: %w", live.Name, err)
		}
	}
	change := revision.Difference(&old, wanted)
	if !change.Restart {
		m.Notes = append(m.Notes, fmt.Sprintf("change Instance %s in place: %s", live.Name, change.Text))
		return nil
	}
	// Until then the member keeps what it runs.
	m.Kept = m.Wanted.DeepCopy()
	m.Kept.Spec.Revision = live.Spec.Revision
	m.Kept.Spec.PodTemplate = kept
	m.Kept.Spec.VolumeClaimTemplates = scaling.OnlineClaims(live.Spec.VolumeClaimTemplates, m.Kept.Spec.VolumeClaimTemplates)
	m.Wanted.Spec.InPlaceFrom = ""
	if live.Spec.InPlaceFrom != "" && live.Status.Revision != live.Spec.Revision {
		// The pod may still be called by the very revision that is wanted again,
		// and its member runs with another configuration all the same.
		m.Wanted.Spec.StopPod = live.Status.PodUID
		// Should that pod never stop, this reports what its member runs with.
		member.SetAnnotation(m.Wanted, v1alpha1.AnnotationAppliedConfig, strings.Join(append([]string{string(live.Status.PodUID)}, append(member.AppliedRevisions(live), live.Spec.Revision)...), " "))
	}
	var err error
	m.RestartReason, err = onlineconfig.ApplyOnline(m, in, &old, wanted, verdict.NewReason(change.Text))
	return err
}

// instanceChange is what becomes of an Instance by what the plan has decided.
func (out *changes) instanceChange(in planning.Inputs, m planning.InstanceDiff, leaving planning.Removal, stops disruption.Result) planning.InstanceChange {
	name := m.Live.Name
	eviction := out.planEviction(in, m.Live, stops)
	if m.Live.DeletionTimestamp != nil {
		stop := stops.Released[name] && stops.Disrupted[name] == member.Restart && !in.Rendering.Component.IsNotServing(m.Live)
		c := planning.InstanceChange{Live: m.Live, Desired: deletingInstance(in, m.Live, stops, eviction), Stops: stop}
		out.recheckRecord(in, c)
		return c
	}
	c := planning.InstanceChange{Live: m.Live, Desired: m.Kept}
	if stops.StopPermitted[name] {
		c.Desired, c.Stops = m.Wanted, !in.Rendering.Component.IsNotServing(m.Live)
		c.Rolls = c.Stops && m.Live.Spec.Revision != m.Wanted.Spec.Revision
	} else if m.RestartReason.IsGiven() {
		out.outcome = step.Worst(out.outcome, step.Wait("Instance", member.WaitDeadline, v1alpha1.ReasonRestartPending, fmt.Sprintf("Instance %s needs a restart: %s", name, m.RestartReason.Text())))
	}
	recordDisruption(in, c.Desired, m.Live, stops, eviction)
	recordEviction(c.Desired, m.Live, eviction)
	out.recheckRecord(in, c)
	if d, leaves := leaving.Candidates[name]; leaves && (!in.Rendering.Component.NeedsLease(d) || stops.Disrupted[name] == member.Remove) {
		c.Desired.Spec.Retire = true
	} else if m.Live.Spec.Retire {
		out.notes = append(out.notes, fmt.Sprintf("keep Instance %s: its removal was withdrawn", name))
	}
	return c
}

// recheckRecord has PD say again that nothing is left to undo of a member, if the record of what was
// done to it goes.
func (out *changes) recheckRecord(in planning.Inputs, c planning.InstanceChange) {
	if c.Live.Annotations[v1alpha1.AnnotationDisruption] != "" && c.Desired.Annotations[v1alpha1.AnnotationDisruption] == "" {
		out.rechecks = append(out.rechecks, disruption.RecheckUndone(in, c.Live)...)
	}
}

// deletingInstance is an Instance that is being deleted, as it is to be until it has gone.
// Only its finalizer changes, when its member has left, and whether its pod runs: a
// suspended group stops it like the others, and the member leaves when the group is
// resumed.
func deletingInstance(in planning.Inputs, live *v1alpha1.Instance, stops disruption.Result, eviction component.Eviction) *v1alpha1.Instance {
	desired := &v1alpha1.Instance{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: live.Namespace, Name: live.Name, Labels: live.Labels, OwnerReferences: live.OwnerReferences,
			Finalizers: member.Finalizers(live),
		},
		Spec: *live.Spec.DeepCopy(),
	}
	desired.Spec.Suspended = in.Group.GetComponentSpec().Suspended
	deferSuspension(desired, live, in.Rendering)
	recordDisruption(in, desired, live, stops, eviction)
	if stops.Released[live.Name] {
		member.RemoveMemberFinalizer(desired)
	}
	return desired
}

// recordDisruption writes on an Instance what is being done to its member, or keeps the
// record of what is still to be undone. A pod that has to stop before its member is known
// to have left is suspended. The record of a member that must have no leaders stays after
// its disruption has ended: it tells later what to undo.
func recordDisruption(in planning.Inputs, desired, live *v1alpha1.Instance, stops disruption.Result, eviction component.Eviction) {
	before := member.Verb(live.Annotations[v1alpha1.AnnotationDisruption])
	left := before != "" && (in.Rendering.DatabaseUnknown || disruption.HasLeftovers(in.Rendering.Component, live))
	switch verb, under := stops.Disrupted[live.Name]; {
	case under:
		member.SetAnnotation(desired, v1alpha1.AnnotationDisruption, string(verb))
	case eviction.Marked && (!left || before != member.Remove):
		member.SetAnnotation(desired, v1alpha1.AnnotationDisruption, string(member.Evict))
	case left:
		member.SetAnnotation(desired, v1alpha1.AnnotationDisruption, string(before))
	}
	desired.Spec.Suspended = desired.Spec.Suspended || stops.Suspended[live.Name]
}

// preserveAnnotations keeps what earlier plans have written on an Instance.
func preserveAnnotations(desired, live *v1alpha1.Instance) {
	desired.Spec.StopPod, desired.Spec.InPlaceFrom = live.Spec.StopPod, live.Spec.InPlaceFrom
	if answered := live.Annotations[v1alpha1.AnnotationRestarted]; answered != "" {
		member.SetAnnotation(desired, v1alpha1.AnnotationRestarted, answered)
	}
}

// deferSuspension holds back the stop or the start of a pod until the groups that come
// first are done.
func deferSuspension(desired, live *v1alpha1.Instance, r component.Rendering) {
	switch {
	case desired.Spec.Suspended && !r.MaySuspend.IsAllowed():
		desired.Spec.Suspended = live.Spec.Suspended
	case !desired.Spec.Suspended && !r.Gate.Open:
		desired.Spec.Suspended = live.Spec.Suspended
	}
}
