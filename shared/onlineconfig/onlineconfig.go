package onlineconfig

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/planning"
	"github.com/tidb-groups/tidb-groups/shared/revision"
	"github.com/tidb-groups/tidb-groups/shared/rollout"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// keepAppliedRevisions leaves on an Instance which revisions' configuration its member may
// have been given.
func keepAppliedRevisions(m *planning.InstanceDiff, revisions []string) {
	for _, i := range []*v1alpha1.Instance{m.Kept, m.Wanted} {
		if len(revisions) > 0 {
			member.SetAnnotation(i, v1alpha1.AnnotationAppliedConfig, string(m.Live.Status.PodUID)+" "+strings.Join(revisions, " "))
		}
	}
}

// addConfigUpdate adds what a running member still lacks of its configuration to a plan.
func addConfigUpdate(m *planning.InstanceDiff, plan *planning.Plan, lacks component.ConfigProgress, update component.ConfigUpdate) {
	plan.ConfigOutcome = step.Worst(plan.ConfigOutcome, lacks.Outcome)
	if lacks.Apply {
		update.Instance = m.Live
		plan.ConfigUpdates = append(plan.ConfigUpdates, update)
		plan.Notes = append(plan.Notes, "give Instance "+m.Live.Name+" its configuration while it runs")
	}
}

// ApplyOnline has a running member given what another revision differs in, if it takes
// that while it runs, and lets the Instance have the revision once the member has
// shown that it has all of it: until then a pod that is recreated gets the files
// that are known to be good. It says why the pod has to be restarted all the same;
// empty if it has not.
func ApplyOnline(m *planning.InstanceDiff, task planning.Task, old, wanted *corev1.PodTemplateSpec, why string) (string, error) {
	live, target := m.Live, task.Target
	if task.Rendering.OnlineConfig == nil || task.Group.GetComponentSpec().Suspended {
		return why, nil
	}
	files, err := task.LoadStoredFiles(task.Snapshot)
	if err != nil || files[live.Spec.Revision] == nil {
		return why, err
	}
	mounted, err := remounted(task.Group, wanted, target.Files, files[live.Spec.Revision])
	if err != nil || revision.Difference(old, mounted).Restart || !task.Rendering.OnlineConfig.AppliesOnline(files[live.Spec.Revision], target.Files).Allowed() {
		return why, err
	}
	marks := member.AppliedRevisions(live)
	if _, ready := member.ReadySince(live); !ready || live.Status.Revision != live.Spec.Revision || live.Status.PodUID == live.Spec.StopPod {
		left := rollout.StartTimeLeft(task.Snapshot, live)
		if left <= 0 && task.Rendering.Component.NotServing(live) {
			return why, nil
		}
		wait := step.Wait("Instance", member.WaitDeadline, v1alpha1.ReasonConfigPending, "Instance "+live.Name+" is given its changed configuration when its pod is ready")
		if left > 0 {
			wait.After = min(left, member.WaitDeadline)
		}
		m.ApplyingConfig = true
		keepAppliedRevisions(m, marks)
		task.ConfigOutcome = step.Worst(task.ConfigOutcome, wait)
		return "", nil
	}
	others := files.Others(append(marks, live.Spec.Revision, live.Status.MadeFrom)...)
	lacks := task.Rendering.OnlineConfig.Progress(live, others, target.Files)
	switch {
	case lacks.Stuck != "":
		keepAppliedRevisions(m, marks)
		return lacks.Stuck, nil
	case lacks.Outcome.Kind == step.KindDone:
		m.Wanted.Spec.InPlaceFrom = live.Spec.Revision
		m.Kept = m.Wanted
		task.Notes = append(task.Notes, fmt.Sprintf("change Instance %s in place: its member runs with the changed configuration", live.Name))
		return "", nil
	case !slices.Contains(marks, target.Hash):
		// The mark is written before anything is done.
		marks, lacks.Apply = append(marks, target.Hash), false
		task.Notes = append(task.Notes, "mark Instance "+live.Name+": its member is given a changed configuration")
	}
	m.ApplyingConfig = true
	keepAppliedRevisions(m, marks)
	addConfigUpdate(m, task.Plan, lacks, component.ConfigUpdate{Others: others, Wanted: target.Files})
	return "", nil
}

// remounted returns a template with the ConfigMap of other files.
func remounted(g v1alpha1.Group, template *corev1.PodTemplateSpec, has, wanted map[string]string) (*corev1.PodTemplateSpec, error) {
	from, err := rollout.ConfigMapName(g.GetName(), has)
	if err != nil {
		return nil, err
	}
	to, err := rollout.ConfigMapName(g.GetName(), wanted)
	if err != nil {
		return nil, err
	}
	out := template.DeepCopy()
	for i := range out.Spec.Volumes {
		if c := out.Spec.Volumes[i].ConfigMap; c != nil && c.Name == from {
			c.Name = to
		}
	}
	return out, nil
}

// KeepConfig sees to it that a member which may run with something else than its
// revision says runs with that: its process may have been started again with the
// files of an older revision, or a change may have been taken back half way.
func KeepConfig(m *planning.InstanceDiff, task planning.Task) error {
	live, marks := m.Live, member.AppliedRevisions(m.Live)
	if task.Rendering.OnlineConfig == nil || m.ApplyingConfig || !member.MayRunOtherConfig(live) {
		return nil
	}
	files, err := task.LoadStoredFiles(task.Snapshot)
	if err != nil {
		return err
	}
	own := files[m.Kept.Spec.Revision]
	if _, ready := member.ReadySince(live); !ready || own == nil {
		keepAppliedRevisions(m, marks)
		return nil
	}
	others := files.Others(append(slices.Clone(marks), live.Status.MadeFrom)...)
	lacks := task.Rendering.OnlineConfig.Progress(live, others, own)
	if lacks.Stuck != "" && m.RestartReason == "" {
		m.RestartReason, m.RestartOnly = lacks.Stuck, true
		m.Wanted = m.Kept.DeepCopy()
		m.Wanted.Spec.StopPod = live.Status.PodUID
	}
	if lacks.Outcome.Kind != step.KindDone || lacks.Stuck != "" {
		keepAppliedRevisions(m, marks)
		addConfigUpdate(m, task.Plan, lacks, component.ConfigUpdate{Others: others, Wanted: own})
	}
	return nil
}
