package apply

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
)

// request is an object to apply, as JSON. What the API server answers is not decoded: it is the
// whole object with its managed fields, and the caches bring what is of interest.
type request map[string]any

// newRequest is a request that applies an object.
func newRequest(object *unstructured.Unstructured) *request { return (*request)(&object.Object) }

// IsApplyConfiguration implements runtime.ApplyConfiguration. The client finds where to send
// the request with the next four.
func (r *request) IsApplyConfiguration() {}

// GetAPIVersion returns the version of the object's kind.
func (r *request) GetAPIVersion() *string { return ptr.To(r.object().GetAPIVersion()) }

// GetKind returns the kind of the object.
func (r *request) GetKind() *string { return ptr.To(r.object().GetKind()) }

// GetNamespace returns the namespace of the object.
func (r *request) GetNamespace() *string { return ptr.To(r.object().GetNamespace()) }

// GetName returns the name of the object.
func (r *request) GetName() *string { return ptr.To(r.object().GetName()) }

// UnmarshalJSON is given the answer.
func (r *request) UnmarshalJSON([]byte) error { return nil }

func (r *request) object() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: *r}
}
