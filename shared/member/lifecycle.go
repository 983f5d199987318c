package member

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// Verb is what is done to a member on purpose.
type Verb string

const (
	// Restart stops the member's pod, which comes back with the same data.
	Restart Verb = "Restart"
	// Remove takes the member out of the database for good.
	Remove Verb = "Remove"
	// Evict keeps leaders off a member that goes on running, because a user asks. It needs
	// no Lease, and nothing waits for its end.
	Evict Verb = "Evict"
)

// HasStartedPreparation reports whether the preparation of a stop or a removal was started.
// Keeping leaders off a member is none.
func HasStartedPreparation(i *v1alpha1.Instance) bool {
	verb := Verb(i.Annotations[v1alpha1.AnnotationDisruption])
	return verb != "" && verb != Evict
}

// HasMemberFinalizer reports whether the member has to leave the database before the
// Instance may be deleted.
func HasMemberFinalizer(i *v1alpha1.Instance) bool {
	return slices.Contains(i.Finalizers, v1alpha1.FinalizerMember)
}

// Finalizers are those that the operator of a group writes on an Instance, of which live is
// what it has seen, nil if it has not been made yet: its own, and that of the instance operator,
// which then needs no write of its own. An Instance that is being deleted takes no new ones.
func Finalizers(live *v1alpha1.Instance) []string {
	out := []string{v1alpha1.FinalizerMember, v1alpha1.FinalizerInstance}
	if live == nil || live.DeletionTimestamp == nil {
		return out
	}
	return slices.DeleteFunc(out, func(f string) bool { return !slices.Contains(live.Finalizers, f) })
}

// RemoveMemberFinalizer takes the finalizer of the group's operator off an Instance whose member has left.
func RemoveMemberFinalizer(desired *v1alpha1.Instance) {
	desired.Finalizers = slices.DeleteFunc(desired.Finalizers, func(f string) bool { return f == v1alpha1.FinalizerMember })
}

// IsDrained reports whether the Instance's status says that its member has left.
func IsDrained(i *v1alpha1.Instance) bool {
	return meta.IsStatusConditionTrue(i.Status.Conditions, v1alpha1.ConditionDrained)
}

// HasLeft reports whether the Instance is being deleted and its member has left. Its pod
// may still be there, and may take indefinitely to stop.
func HasLeft(i *v1alpha1.Instance) bool { return i.DeletionTimestamp != nil && IsDrained(i) }

// BySlot orders Instances by their slots.
func BySlot(a, b *v1alpha1.Instance) int { return cmp.Compare(a.Spec.Slot, b.Spec.Slot) }

// SurgeValue is the value of the annotation on members beyond spec.replicas.
const SurgeValue = "true"

// IsSurge reports whether an Instance is one of those beyond spec.replicas.
func IsSurge(i *v1alpha1.Instance) bool { return i.Annotations[v1alpha1.AnnotationSurge] != "" }

// SetAnnotation sets an annotation of an Instance.
func SetAnnotation(i *v1alpha1.Instance, key, value string) {
	if i.Annotations == nil {
		i.Annotations = map[string]string{}
	}
	i.Annotations[key] = value
}
