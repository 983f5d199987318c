package member

import (
	"cmp"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// EvictionRequest reports whether a person wants the member of an Instance to lead
// nothing, and how he names that.
func EvictionRequest(i *v1alpha1.Instance) (request string, asked bool) {
	request, asked = i.Annotations[v1alpha1.AnnotationEvictLeaders]
	return cmp.Or(request, "true"), asked
}

// IsRemovedFirst reports whether a person has said that a member is to leave before others
// when some do.
func IsRemovedFirst(i *v1alpha1.Instance) bool {
	_, asked := i.Annotations[v1alpha1.AnnotationRemoveFirst]
	return asked
}

// ReplacementReason says why a member is to be replaced by a new one in another slot; empty if
// it is not: a person has said so, or for its volumes.
func ReplacementReason(g v1alpha1.Group, i *v1alpha1.Instance) string {
	if IsReplaceRequested(i) {
		return "annotation " + v1alpha1.AnnotationReplace
	}
	return VolumeReplacementReason(g, i)
}

// IsReplaceRequested reports whether a person has said that a member is to be replaced.
func IsReplaceRequested(i *v1alpha1.Instance) bool {
	_, asked := i.Annotations[v1alpha1.AnnotationReplace]
	return asked
}
