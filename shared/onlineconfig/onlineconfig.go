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
	"github.com/tidb-groups/tidb-groups/shared/verdict"
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

// addConfigUpdate records what a running member still lacks of its configuration.
func addConfigUpdate(m *planning.InstanceDiff, lacks component.ConfigProgress, update component.ConfigUpdate) {
	m.ConfigOutcome = step.Worst(m.ConfigOutcome, lacks.Outcome)
	if lacks.Apply {
		update.Instance = m.Live
		m.ConfigUpdate = &update
		m.Notes = append(m.Notes, "give Instance "+m.Live.Name+" its configuration while it runs")
	}
}

// ApplyOnline has a running member given what another revision differs in, if it takes
// that while it runs, and lets the Instance have the revision once the member has
// shown that it has all of it: until then a pod that is recreated gets the files
// that are known to be good. It says why the pod has to be restarted all the same,
// if it has.
func ApplyOnline(m *planning.InstanceDiff, in planning.Inputs, old, wanted *corev1.PodTemplateSpec, why verdict.Reason) (verdict.Reason, error) {
	live, target := m.Live, in.Target
	if in.Rendering.OnlineConfig == nil || in.Group.GetComponentSpec().Suspended {
		return why, nil
	}
	files, err := in.StoredFiles()
	if err != nil || files[live.Spec.Revision] == nil {
		return why, err
	}
	mounted, err := replaceConfigMap(in.Group, wanted, target.Files, files[live.Spec.Revision])
	if err != nil || revision.Difference(old, mounted).Restart || !in.Rendering.OnlineConfig.AppliesOnline(files[live.Spec.Revision], target.Files).IsAllowed() {
		return why, err
	}
	marks := member.AppliedRevisions(live)
	if _, ready := member.ReadySince(live); !ready || live.Status.Revision != live.Spec.Revision || live.Status.PodUID == live.Spec.StopPod {
		left := rollout.StartTimeLeft(in.Snapshot, live)
		refused := in.Rendering.OnlineConfig.Refused(target.Files)
		if left <= 0 && in.Rendering.Component.IsNotServing(live) && !refused.IsGiven() {
			return why, nil
		}
		text := "Instance " + live.Name + " is given its changed configuration when its pod is ready"
		if refused.IsGiven() {
			// Whatever keeps it from starting, the new files are not known to be good.
			text += ", or when running members take that: " + refused.Text()
		}
		wait := step.Wait("Instance", member.WaitDeadline, v1alpha1.ReasonConfigPending, text)
		if left > 0 {
			wait.After = min(left, member.WaitDeadline)
		}
		m.ApplyingConfig = true
		keepAppliedRevisions(m, marks)
		m.ConfigOutcome = step.Worst(m.ConfigOutcome, wait)
		return verdict.Reason{}, nil
	}
	others := files.OtherFiles(append(marks, live.Spec.Revision, live.Status.MadeFrom)...)
	lacks := in.Rendering.OnlineConfig.Progress(live, others, target.Files)
	switch {
	case lacks.Stuck.IsGiven():
		keepAppliedRevisions(m, marks)
		return lacks.Stuck, nil
	case lacks.Outcome.Kind == step.KindDone:
		m.Wanted.Spec.InPlaceFrom = live.Spec.Revision
		m.Kept = m.Wanted
		m.Notes = append(m.Notes, fmt.Sprintf("change Instance %s in place: its member runs with the changed configuration", live.Name))
		return verdict.Reason{}, nil
	case !slices.Contains(marks, target.Hash):
		// The mark is written before anything is done.
		marks, lacks.Apply = append(marks, target.Hash), false
		m.Notes = append(m.Notes, "mark Instance "+live.Name+": its member is given a changed configuration")
	}
	m.ApplyingConfig = true
	keepAppliedRevisions(m, marks)
	addConfigUpdate(m, lacks, component.ConfigUpdate{Others: others, Wanted: target.Files})
	return verdict.Reason{}, nil
}

// replaceConfigMap returns a template with the ConfigMap of other files.
func replaceConfigMap(g v1alpha1.Group, template *corev1.PodTemplateSpec, has, wanted map[string]string) (*corev1.PodTemplateSpec, error) {
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
func KeepConfig(m *planning.InstanceDiff, in planning.Inputs) error {
	live, marks := m.Live, member.AppliedRevisions(m.Live)
	if in.Rendering.OnlineConfig == nil || m.ApplyingConfig || !member.MayRunOtherConfig(live) {
		return nil
	}
	files, err := in.StoredFiles()
	if err != nil {
		return err
	}
	own := files[m.Kept.Spec.Revision]
	if _, ready := member.ReadySince(live); !ready || own == nil {
		keepAppliedRevisions(m, marks)
		return nil
	}
	others := files.OtherFiles(append(slices.Clone(marks), live.Status.MadeFrom)...)
	lacks := in.Rendering.OnlineConfig.Progress(live, others, own)
	if lacks.Stuck.IsGiven() && !m.RestartReason.IsGiven() {
		m.RestartReason, m.RestartOnly = lacks.Stuck, true
		m.Wanted = m.Kept.DeepCopy()
		m.Wanted.Spec.StopPod = live.Status.PodUID
	}
	if lacks.Outcome.Kind != step.KindDone || lacks.Stuck.IsGiven() {
		keepAppliedRevisions(m, marks)
		addConfigUpdate(m, lacks, component.ConfigUpdate{Others: others, Wanted: own})
	}
	return nil
}
