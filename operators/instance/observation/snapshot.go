package observation

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/origin"
)

// Snapshot is everything that a plan may rest on.
type Snapshot struct {
	Instance *v1alpha1.Instance
	// Now is when the snapshot was taken.
	Now time.Time
	// Gone says that the Instance does not exist any more.
	Gone bool
	// Err says that something could not be read: nothing else in the snapshot
	// but the Instance is to be relied on.
	Err error
	// Ownerless says that the group does not exist any more, or is about to go:
	// nothing will take the member out of a database first.
	Ownerless bool
	// Alone says that the Instance has no owner, and that the group which it names
	// does not exist: nothing sets its spec back.
	Alone bool
	// Template is the decoded spec.podTemplate; nil with TemplateErr.
	Template    *corev1.PodTemplateSpec
	TemplateErr error
	// Pod of the Instance's name, whatever owns it; nil if there is none.
	Pod *corev1.Pod
	// Volumes in the order of the spec.
	Volumes []Volume
	// Strays are claims of the Instance that its spec does not name any more.
	Strays []*corev1.PersistentVolumeClaim
	// Classes by name; nil where they may not be read, in a namespaced
	// installation.
	Classes map[string]*storagev1.StorageClass
	// Node is the one that a message is about, if there is such a message.
	Node NodeState
}

// Volume is one entry of spec.volumeClaimTemplates and what there is of it.
type Volume struct {
	Template v1alpha1.VolumeClaimTemplate
	// Name of the claim.
	Name string
	// Recorded is the UID of the claim that the pod was, or is about to be,
	// started with; empty if none was recorded.
	Recorded types.UID
	// Claim that exists; nil if none does.
	Claim *corev1.PersistentVolumeClaim
	// Bound is the PersistentVolume of the claim, empty if it is not known.
	Bound string
	// Place is where the PersistentVolume can be used.
	Place Place
	// Refused is the reason for which the API server has just not let the claim be
	// made or changed; empty if it has not been asked, or has.
	Refused string
	// Classless says that the VolumeAttributesClass which the spec asks for does
	// not exist. It is looked for as long as the volume does not have it.
	Classless bool
	// Dropped says that the API server has taken such a class from the claim
	// without a word, for the spec as it is: it does not know them.
	Dropped bool
}

// MayHaveStopped reports whether an Instance's pod may just have been stopped, by what the
// Instance asked for before or asks for no more. A user who reads in status that it runs on
// goes by that, so a cache that does not show it yet will not do.
func MayHaveStopped(instance *v1alpha1.Instance) bool {
	status := instance.Status
	pod := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionPodReady)
	return status.ObservedGeneration != instance.Generation || pod == nil || pod.Status == metav1.ConditionUnknown || pod.Reason == v1alpha1.ReasonPodTerminating
}

// MustStop reports whether an Instance's spec asks for its pod to stop.
func MustStop(s *Snapshot) bool {
	spec := s.Instance.Spec
	return s.Pod.DeletionTimestamp == nil && (spec.Suspended || spec.StopPod == s.Pod.UID || s.Pod.Labels[v1alpha1.LabelRevision] != spec.Revision)
}

// RecordedClaim returns the UID of the claim that status records for a volume.
func RecordedClaim(instance *v1alpha1.Instance, volumeName string) types.UID {
	for _, v := range instance.Status.Volumes {
		if v.Name == volumeName {
			return v.ClaimUID
		}
	}
	return ""
}

// AreClaimsRecorded says whether status records a claim for every volume.
func AreClaimsRecorded(instance *v1alpha1.Instance) bool {
	return !slices.ContainsFunc(instance.Spec.VolumeClaimTemplates, func(t v1alpha1.VolumeClaimTemplate) bool {
		return RecordedClaim(instance, t.Name) == ""
	})
}

// OriginOf is the object that a user edits to change the Instance.
func OriginOf(s *Snapshot) origin.Origin { return origin.OfInstance(s.Instance, s.Alone) }

// MustFinalize reports whether this operator decides when the Instance may be gone: it has its own
// finalizer on it, or the group is gone and no other operator removes the group's finalizer.
func MustFinalize(s *Snapshot) bool {
	return slices.Contains(s.Instance.Finalizers, v1alpha1.FinalizerInstance) || s.Ownerless
}

// IsDraining reports whether the operator of the group still has to take the member
// out of the database before its pod may stop for good.
func IsDraining(s *Snapshot) bool {
	return slices.Contains(s.Instance.Finalizers, v1alpha1.FinalizerMember) && !s.Ownerless
}
