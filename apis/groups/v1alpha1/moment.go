package v1alpha1

import "time"

// Moment is a time with the fractions of a second that it was written with, by RFC 3339. The
// times of Kubernetes lose them when they are written again.
// +kubebuilder:validation:Type=string
// +kubebuilder:validation:Format=date-time
// +kubebuilder:object:generate=false
type Moment struct{ time.Time }

// DeepCopyInto copies a Moment.
func (m *Moment) DeepCopyInto(out *Moment) { *out = *m }

// DeepCopy returns a copy of a Moment.
func (m *Moment) DeepCopy() *Moment {
	if m == nil {
		return nil
	}
	out := *m
	return &out
}
