package podtemplate

import (
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/instance/planning"
	"github.com/tidb-groups/tidb-groups/operators/instance/podstate"
	"github.com/tidb-groups/tidb-groups/shared/revision"
)

// Difference says whether a pod needs a restart to be what the Instance asks for,
// and why. It compares the pod with the template by the one that the pod
// remembers, unless the group's operator says that the running member has all that
// differs.
func Difference(instance *v1alpha1.Instance, pod *corev1.Pod, template *corev1.PodTemplateSpec) revision.Change {
	runs := pod.Labels[v1alpha1.LabelRevision]
	if runs == instance.Spec.Revision || runs != "" && runs == instance.Spec.InPlaceFrom {
		return revision.Change{}
	}
	old := RecordedTemplate(pod)
	if old == nil {
		return revision.Change{Text: "revision: the pod has lost the template that it was made from", Restart: true}
	}
	return revision.Difference(old, template)
}

// RecordedTemplate returns the template that a pod carries, nil if it carries none
// that can be read.
func RecordedTemplate(pod *corev1.Pod) *corev1.PodTemplateSpec {
	old := &corev1.PodTemplateSpec{}
	if err := json.Unmarshal([]byte(pod.Annotations[v1alpha1.AnnotationTemplate]), old); err != nil {
		return nil
	}
	return old
}

// BuildPatch returns the patch that brings labels, annotations and owner of a
// pod to what they would be on a new one, nil if there is nothing to change.
// Only what an earlier template brought is taken away.
func BuildPatch(instance *v1alpha1.Instance, pod, next *corev1.Pod, template *corev1.PodTemplateSpec) map[string]any {
	old := RecordedTemplate(pod)
	if old == nil {
		old = template
	}
	metadata := map[string]any{}
	if labels := mapChanges(pod.Labels, next.Labels, old.Labels); len(labels) > 0 {
		metadata["labels"] = labels
	}
	annotations := mapChanges(pod.Annotations, next.Annotations, old.Annotations)
	if from, had := MadeFrom(instance, pod), pod.Annotations[v1alpha1.AnnotationMadeFrom]; from == "" && had != "" {
		annotations[v1alpha1.AnnotationMadeFrom] = nil
	} else if from != had {
		annotations[v1alpha1.AnnotationMadeFrom] = from
	}
	if len(annotations) > 0 {
		metadata["annotations"] = annotations
	}
	if podstate.OwnerOf(instance, pod) == podstate.OrphanPod {
		metadata["ownerReferences"] = append(slices.Clone(pod.OwnerReferences), ownerReference(instance))
	}
	if len(metadata) == 0 {
		return nil
	}
	return planning.WithUID(map[string]any{"metadata": metadata}, pod.UID)
}

// MadeFrom returns the revision that a pod was made from, if it is another than the
// one that the Instance asks for and the pod is brought to without a restart.
func MadeFrom(instance *v1alpha1.Instance, pod *corev1.Pod) string {
	made := pod.Annotations[v1alpha1.AnnotationMadeFrom]
	if runs := pod.Labels[v1alpha1.LabelRevision]; made == "" && runs == instance.Spec.InPlaceFrom {
		made = runs
	}
	if made == instance.Spec.Revision {
		return ""
	}
	return made
}

// mapChanges returns a merge patch from have to wanted, in which keys that were
// wanted before and are not any more become null.
func mapChanges(have, wanted, before map[string]string) map[string]any {
	out := map[string]any{}
	for key, value := range wanted {
		if current, ok := have[key]; !ok || current != value {
			out[key] = value
		}
	}
	for key := range before {
		_, still := wanted[key]
		if _, there := have[key]; there && !still {
			out[key] = nil
		}
	}
	return out
}
