package member

import (
	"cmp"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/verdict"
)

// EvictionRequest returns the value by which a user asks that the member of an Instance
// leads nothing, and whether he does.
func EvictionRequest(i *v1alpha1.Instance) (request string, asked bool) {
	request, asked = i.Annotations[v1alpha1.AnnotationEvictLeaders]
	return cmp.Or(request, "true"), asked
}

// IsRemovedFirst reports whether a user has asked that a member leaves before others in a
// scale-in.
func IsRemovedFirst(i *v1alpha1.Instance) bool {
	_, asked := i.Annotations[v1alpha1.AnnotationRemoveFirst]
	return asked
}

// ReplacementReason says why a member is to be replaced by a new one in another slot: a
// user asked, or its volumes cannot become what the spec asks for.
func ReplacementReason(g v1alpha1.Group, i *v1alpha1.Instance) verdict.Reason {
	if IsReplaceRequested(i) {
		return verdict.NewReason("annotation " + v1alpha1.AnnotationReplace)
	}
	return VolumeReplacementReason(g, i)
}

// IsReplaceRequested reports whether a user has asked that a member is replaced.
func IsReplaceRequested(i *v1alpha1.Instance) bool {
	_, asked := i.Annotations[v1alpha1.AnnotationReplace]
	return asked
}
