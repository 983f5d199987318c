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
	"github.com/tidb-groups/tidb-groups/shared/workload"
)

// compareInstances compares every Instance that belongs to the group with its spec. One
// that is being deleted can only be released.
func compareInstances(task planning.Task) ([]planning.InstanceDiff, error) {
	var living []planning.InstanceDiff
	for _, i := range task.Snapshot.Instances {
		switch {
		case !workload.IsOwned(task.Group, i):
		case i.DeletionTimestamp == nil:
			m, err := compareInstance(task, i)
			if err != nil {
				return nil, err
			}
			living = append(living, m)
		case member.HasMemberFinalizer(i) && task.Rendering.Component.RestartsWhenDeleted(i):
			living = append(living, planning.InstanceDiff{Live: i, RestartReason: planning.ReasonDeleted})
		case member.HasMemberFinalizer(i):
			living = append(living, planning.InstanceDiff{Live: i})
		}
	}
	return living, nil
}

// pendingDisruptions returns what would stop members: restarts and removals.
func pendingDisruptions(task planning.Task, living []planning.InstanceDiff, leaving planning.Removal) []component.Disruption {
	var out []component.Disruption
	for _, m := range living {
		candidate, leaves := leaving.Candidates[m.Live.Name]
		if leaves && task.Rendering.Component.NeedsLease(candidate) {
			out = append(out, candidate)
		}
		if m.RestartReason != "" && (!leaves || task.Rendering.Component.NotServing(m.Live)) {
			out = append(out, component.Disruption{Instance: m.Live, Verb: member.Restart, Why: m.RestartReason, Revision: task.Target.Hash})
		}
	}
	return out
}

// compareInstance compares an Instance with what it is to be.
func compareInstance(task planning.Task, live *v1alpha1.Instance) (planning.InstanceDiff, error) {
	wanted, err := component.NewInstance(task.Group, task.Rendering, task.Target, live.Spec.Slot)
	if err != nil {
		return planning.InstanceDiff{}, err
	}
	preserveAnnotations(wanted, live)
	wanted.Spec.VolumeClaimTemplates = scaling.WithoutShrinking(scaling.KeepClaims(task.Group, wanted.Spec.VolumeClaimTemplates, live), live)
	deferSuspension(wanted, live, task.Rendering)
	m := planning.InstanceDiff{Live: live, Kept: wanted, Wanted: wanted}
	if live.Spec.Revision != task.Target.Hash {
		if err := compareRevision(&m, task); err != nil {
			return m, err
		}
	}
	if err := onlineconfig.KeepConfig(&m, task); err != nil {
		return m, err
	}
	task.ApplyingConfig = task.ApplyingConfig || m.ApplyingConfig
	if why := observation.RestartRequest(task.Snapshot, live); m.RestartReason == "" && why != "" && live.Status.PodUID != "" {
		// The pod is restarted as it is.
		m.RestartReason, m.RestartOnly = why, true
		m.Wanted = m.Kept.DeepCopy()
		m.Wanted.Spec.StopPod = live.Status.PodUID
	}
	if m.RestartReason == "" && observation.IsRestartWithdrawn(task.Snapshot, live) {
		task.Notes = append(task.Notes, fmt.Sprintf("keep the pod of Instance %s: its restart is no longer requested", live.Name))
		m.Kept.Spec.StopPod = ""
	}
	if answer := live.Annotations[v1alpha1.AnnotationRestart]; answer != "" && m.RestartReason != "" {
		member.SetAnnotation(m.Wanted, v1alpha1.AnnotationRestarted, answer)
	}
	return m, nil
}

// compareRevision finds out whether another revision needs a restart.
func compareRevision(m *planning.InstanceDiff, task planning.Task) error {
	live := m.Live
	var old corev1.PodTemplateSpec
	if err := json.Unmarshal(live.Spec.PodTemplate.Raw, &old); err != nil {
		return fmt.Errorf("decode template of Instance %s: %w", live.Name, err)
	}
	wanted, kept := task.Target.Template.DeepCopy(), live.Spec.PodTemplate
	if task.Rendering.AdjustTemplate != nil {
		// What makes no revision is no reason for a restart either, and is
		// changed while a restart is pending too.
		task.Rendering.AdjustTemplate(live.Spec.Slot, wanted)
		task.Rendering.AdjustTemplate(live.Spec.Slot, &old)
		var err error
		if kept.Raw, err = json.Marshal(old); err != nil {
			return fmt.Errorf("encode template of Instance %s: %w", live.Name, err)
		}
	}
	change := revision.Difference(&old, wanted)
	if !change.Restart {
		task.Notes = append(task.Notes, fmt.Sprintf("change Instance %s in place: %s", live.Name, change.Text))
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
	m.RestartReason, err = onlineconfig.ApplyOnline(m, task, &old, wanted, change.Text)
	return err
}

// instanceChange is what becomes of an Instance by what the plan has decided.
func instanceChange(m planning.InstanceDiff, task planning.Task, leaving planning.Removal, marked map[string]bool) planning.InstanceChange {
	name := m.Live.Name
	eviction := planEviction(task, m.Live)
	if m.Live.DeletionTimestamp != nil {
		stops := task.Released[name] && task.Disrupted[name] == member.Restart && !task.Rendering.Component.NotServing(m.Live)
		return planning.InstanceChange{Live: m.Live, Desired: deletingInstance(m.Live, task, eviction), Stops: stops}
	}
	out := planning.InstanceChange{Live: m.Live, Desired: m.Kept}
	if task.StopPermitted[name] {
		out.Desired, out.Stops = m.Wanted, !task.Rendering.Component.NotServing(m.Live)
		out.Rolls = out.Stops && m.Live.Spec.Revision != m.Wanted.Spec.Revision
	} else if m.RestartReason != "" {
		task.Outcome = step.Worst(task.Outcome, step.Wait("Instance", member.WaitDeadline, v1alpha1.ReasonRestartPending, fmt.Sprintf("Instance %s needs a restart: %s", name, m.RestartReason)))
	}
	recordDisruption(out.Desired, m.Live, task, eviction)
	recordEviction(out.Desired, m.Live, eviction)
	if m.Live.Annotations[v1alpha1.AnnotationDisruption] != "" && out.Desired.Annotations[v1alpha1.AnnotationDisruption] == "" {
		disruption.RecheckUndone(task, m.Live)
	}
	if marked[name] {
		member.SetAnnotation(out.Desired, v1alpha1.AnnotationSurge, member.SurgeValue)
	}
	if d, leaves := leaving.Candidates[name]; leaves && (!task.Rendering.Component.NeedsLease(d) || task.Disrupted[name] == member.Remove) {
		out.Desired.Spec.Retire = true
	} else if m.Live.Spec.Retire {
		task.Notes = append(task.Notes, fmt.Sprintf("keep Instance %s: its removal was withdrawn", name))
	}
	return out
}

// updateSuspended gives members of a suspended group their new revision if their pod has
// stopped: they would wait indefinitely for a restart.
func updateSuspended(plan *planning.Plan, living []planning.InstanceDiff) {
	for _, m := range living {
		if m.RestartReason == "" || !m.Live.Spec.Suspended || m.Live.Status.PodUID != "" {
			continue
		}
		plan.PermitStop(m.Live)
		plan.Notes = append(plan.Notes, fmt.Sprintf("change Instance %s, which is suspended: %s", m.Live.Name, m.RestartReason))
	}
}

// deletingInstance is an Instance that is being deleted, as it is to be until it has gone.
// Only its finalizer changes, when its member has left, and whether its pod runs: a
// suspended group stops it like the others, and the member leaves when the group is
// resumed.
func deletingInstance(live *v1alpha1.Instance, task planning.Task, eviction component.Eviction) *v1alpha1.Instance {
	desired := &v1alpha1.Instance{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: live.Namespace, Name: live.Name, Labels: live.Labels, OwnerReferences: live.OwnerReferences,
			Finalizers: member.Finalizers(live),
		},
		Spec: *live.Spec.DeepCopy(),
	}
	desired.Spec.Suspended = task.Group.GetComponentSpec().Suspended
	deferSuspension(desired, live, task.Rendering)
	recordDisruption(desired, live, task, eviction)
	if task.Released[live.Name] {
		member.Release(desired)
	}
	return desired
}

// recordDisruption writes on an Instance what is being done to its member, or keeps the
// record of what is still to be undone. A pod that has to stop before its member is known
// to have left is suspended. The record of a member that must have no leaders stays after
// its disruption has ended: it tells later what to undo.
func recordDisruption(desired, live *v1alpha1.Instance, task planning.Task, eviction component.Eviction) {
	before := member.Verb(live.Annotations[v1alpha1.AnnotationDisruption])
	left := before != "" && (task.Rendering.DatabaseUnknown || disruption.HasLeftovers(task.Rendering.Component, live))
	switch verb, under := task.Disrupted[live.Name]; {
	case under:
		member.SetAnnotation(desired, v1alpha1.AnnotationDisruption, string(verb))
	case eviction.Marked && (!left || before != member.Remove):
		member.SetAnnotation(desired, v1alpha1.AnnotationDisruption, string(member.Evict))
	case left:
		member.SetAnnotation(desired, v1alpha1.AnnotationDisruption, string(before))
	}
	desired.Spec.Suspended = desired.Spec.Suspended || task.Suspended[live.Name]
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
	case desired.Spec.Suspended && !r.MaySuspend.Allowed():
		desired.Spec.Suspended = live.Spec.Suspended
	case !desired.Spec.Suspended && !r.Gate.Open:
		desired.Spec.Suspended = live.Spec.Suspended
	}
}
