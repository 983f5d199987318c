package v1alpha1

import "time"

// Moment is a time with the fractions of a second that it was written with, by RFC 3339. The
// times of Kubernetes lose them when they are written again.
//
// The API server takes more for a date-time than Go can read, such as one with a small t: one
// such object would keep the operators from reading any of its kind.
// +kubebuilder:validation:Type=string
// +kubebuilder:validation:Format=date-time
// +kubebuilder:validation:Pattern=`^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
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
