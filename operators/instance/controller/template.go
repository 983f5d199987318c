package controller

import (
	"bytes"
	"encoding/json"
	"errors"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
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
