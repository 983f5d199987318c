package podtemplate

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/names"
)

// encodeTemplate is what AnnotationTemplate holds.
func encodeTemplate(template *corev1.PodTemplateSpec) (string, error) {
	raw, err := json.Marshal(template)
	if err != nil {
		return "", fmt.Errorf("encode pod template: %w", err)
	}
	return string(raw), nil
}

// Render returns the pod of an Instance.
func Render(instance *v1alpha1.Instance, template *corev1.PodTemplateSpec) (*corev1.Pod, error) {
	annotations, err := podAnnotations(template)
	if err != nil {
		return nil, err
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name:            instance.Name,
			Namespace:       instance.Namespace,
			Labels:          podLabels(instance, template),
			Annotations:     annotations,
			OwnerReferences: []metav1.OwnerReference{ownerReference(instance)},
		},
		Spec: *template.Spec.DeepCopy(),
	}
	if pod.Spec.Subdomain != "" && pod.Spec.Hostname == "" {
		pod.Spec.Hostname = instance.Name
	}
	for _, t := range instance.Spec.VolumeClaimTemplates {
		pod.Spec.Volumes = slices.DeleteFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == t.Name })
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{
			Name: t.Name,
			VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: names.Claim(t.Name, instance.Name)},
			},
		})
	}
	return pod, nil
}

// podLabels returns the labels of the pod, the template's and our own.
func podLabels(instance *v1alpha1.Instance, template *corev1.PodTemplateSpec) map[string]string {
	labels := maps.Clone(template.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[v1alpha1.LabelManagedBy] = v1alpha1.ManagedBy
	labels[v1alpha1.LabelInstance] = instance.Name
	labels[v1alpha1.LabelRevision] = instance.Spec.Revision
	return labels
}

// podAnnotations returns the annotations of the pod, the template's and the
// template itself.
func podAnnotations(template *corev1.PodTemplateSpec) (map[string]string, error) {
	text, err := encodeTemplate(template)
	if err != nil {
		return nil, err
	}
	annotations := maps.Clone(template.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[v1alpha1.AnnotationTemplate] = text
	return annotations, nil
}

func ownerReference(instance *v1alpha1.Instance) metav1.OwnerReference {
	return *metav1.NewControllerRef(instance, v1alpha1.GroupVersion().WithKind(v1alpha1.KindInstance))
}
