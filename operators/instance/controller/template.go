package controller

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/names"
)

// decodeTemplate decodes a pod template. A field that this version does not
// know is an error: dropping it would start a pod other than the one asked for.
func decodeTemplate(raw runtime.RawExtension) (*corev1.PodTemplateSpec, error) {
	if len(raw.Raw) == 0 {
		return nil, errors.New("it is empty")
	}
	decoder := json.NewDecoder(bytes.NewReader(raw.Raw))
	decoder.DisallowUnknownFields()
	template := &corev1.PodTemplateSpec{}
	if err := decoder.Decode(template); err != nil {
		return nil, err
	}
	if len(template.Spec.Containers) == 0 {
		return nil, errors.New("spec.containers is empty")
	}
	return template, nil
}

// encodeTemplate is what AnnotationTemplate holds.
func encodeTemplate(template *corev1.PodTemplateSpec) (string, error) {
	raw, err := json.Marshal(template)
	if err != nil {
		return "", fmt.Errorf("encode pod template: %w", err)
	}
	return string(raw), nil
}

// renderPod returns the pod of an Instance.
func renderPod(instance *v1alpha1.Instance, template *corev1.PodTemplateSpec) (*corev1.Pod, error) {
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

// renderClaim returns the claim of a volume. It has no owner: it outlives its
// Instance unless claimRetention says otherwise.
func renderClaim(instance *v1alpha1.Instance, template *corev1.PodTemplateSpec, t v1alpha1.VolumeClaimTemplate) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name:      names.Claim(t.Name, instance.Name),
			Namespace: instance.Namespace,
			Labels:    claimLabels(instance, template, t.Name),
			// What carries no such mark somebody else has made.
			Annotations: map[string]string{v1alpha1.AnnotationMadeBy: string(instance.UID)},
		},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			StorageClassName: t.StorageClassName, VolumeAttributesClassName: t.VolumeAttributesClassName,
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: t.Storage}},
		},
	}
}

// claimLabels returns the labels of a claim: what it belongs to, and which of
// Kubernetes' recommended labels the pod carries.
func claimLabels(instance *v1alpha1.Instance, template *corev1.PodTemplateSpec, volumeName string) map[string]string {
	labels := map[string]string{}
	for key, value := range template.Labels {
		if strings.HasPrefix(key, "app.kubernetes.io/") {
			labels[key] = value
		}
	}
	labels[v1alpha1.LabelManagedBy] = v1alpha1.ManagedBy
	labels[v1alpha1.LabelInstance] = instance.Name
	labels[v1alpha1.LabelGroup] = instance.Spec.Group.Name
	labels[v1alpha1.LabelVolume] = volumeName
	return labels
}
