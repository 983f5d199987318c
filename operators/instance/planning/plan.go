package planning

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/shared/step"
)

// Plan is what to do next and why. It holds at most one disruptive action.
type Plan struct {
	AddFinalizer    bool
	CreateClaims    []ClaimCreation
	PatchClaims     []ClaimPatch
	DeleteClaims    []ClaimDeletion
	CreatePod       *corev1.Pod
	PatchPod        *PodPatch
	DeletePod       *PodDeletion
	RemoveFinalizer bool
	// Withdraw holds volumes whose recorded claim was never bound and is to be
	// recreated: its record goes first.
	Withdraw []string
	// Outcome is what remains to be done or waited for once the plan has been
	// carried out.
	Outcome step.Outcome
}

// ClaimCreation makes the claim of a volume.
type ClaimCreation struct {
	// Index in Snapshot.Volumes.
	Index int
	Claim *corev1.PersistentVolumeClaim
}

// ClaimPatch changes a claim, or marks it as retired.
type ClaimPatch struct {
	Claim *corev1.PersistentVolumeClaim
	Body  map[string]any
	// Event and Why tell a user.
	Event, Why string
}

// ClaimDeletion deletes a claim.
type ClaimDeletion struct {
	Claim *corev1.PersistentVolumeClaim
	Why   string
	// Unbound says that the claim goes only if it has no volume yet.
	Unbound bool
}

// PodPatch changes a pod in place.
type PodPatch struct {
	Pod  *corev1.Pod
	Body map[string]any
	Why  string
}

// PodDeletion stops a pod.
type PodDeletion struct {
	Pod *corev1.Pod
	Why string
	// Next is the pod that takes the place of one that could go on running. If
	// the API server would not let it be made, nothing is stopped.
	Next *corev1.Pod
}

// WithUID adds the UID to a patch, so that it never meets another object of
// the same name.
func WithUID(body map[string]any, uid types.UID) map[string]any {
	metadata, ok := body["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		body["metadata"] = metadata
	}
	metadata["uid"] = string(uid)
	return body
}
