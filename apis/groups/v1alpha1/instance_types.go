package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// InstanceSpec is written only by the operator of the group. A change of it is
// that operator's permission to act: the instance operator never asks whether a
// pod may stop, it was asked before.
type InstanceSpec struct {
	// Group that the Instance belongs to.
	Group InstanceGroup `json:"group"`
	// Slot of the Instance in its group; the Instance's name is <group>-<slot>.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100000
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="slot is immutable"
	Slot int32 `json:"slot"`
	// Revision of PodTemplate. A pod of another revision is replaced if the
	// difference needs a restart, else changed in place.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Revision string `json:"revision"`
	// PodTemplate is the pod to run, as a PodTemplateSpec.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	// +mapType=atomic
	PodTemplate runtime.RawExtension `json:"podTemplate"`
	// VolumeClaimTemplates are the claims of the pod; each is named
	// <name>-<instance> and mounted by a pod volume of that name.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	// +optional
	VolumeClaimTemplates []VolumeClaimTemplate `json:"volumeClaimTemplates,omitempty"`
	// ReadinessGates are condition types that the group's operator must set to
	// True before the Instance is Ready.
	// +kubebuilder:validation:MaxItems=8
	// +listType=set
	// +optional
	ReadinessGates []string `json:"readinessGates,omitempty"`
	// Retire says that the member is being drained to be removed; it may be
	// taken back until the Instance is deleted.
	// +optional
	Retire bool `json:"retire,omitempty"`
	// StopPod is the UID of a pod that is to be stopped and created again although
	// nothing of it changes: to leave a node, or because a user asked. Any
	// other pod is left alone.
	// +optional
	StopPod types.UID `json:"stopPod,omitempty"`
	// InPlaceFrom is a revision whose pod becomes this one without being replaced,
	// although the difference would need it: the group's operator has given the
	// running member what differs. A pod of any other revision is compared with
	// PodTemplate.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	InPlaceFrom string `json:"inPlaceFrom,omitempty"`
	// Suspended stops the pod and keeps the claims.
	// +optional
	Suspended bool `json:"suspended,omitempty"`
	// Paused stops the instance operator from changing anything; status is
	// still kept.
	// +optional
	Paused bool `json:"paused,omitempty"`
	// ClaimRetention says what becomes of the claims when the Instance is
	// deleted: WhenScaled if Retire was set, else WhenDeleted.
	// +kubebuilder:default={}
	// +optional
	ClaimRetention ClaimRetention `json:"claimRetention,omitempty"`
	// ClaimLoss says what to do when a claim that a pod has used is gone:
	// Recreate makes an empty one; Hold starts no pod and reports ClaimLost
	// until the group's operator replaces the Instance, because a member that
	// forgot its data must not come back under its old name.
	// +kubebuilder:validation:Enum=Recreate;Hold
	// +kubebuilder:default=Hold
	// +optional
	ClaimLoss ClaimLossPolicy `json:"claimLoss,omitempty"`
}

// ClaimLossPolicy says what to do about a lost claim.
type ClaimLossPolicy string

const (
	// RecreateLostClaim makes an empty claim in place of a lost one.
	RecreateLostClaim ClaimLossPolicy = "Recreate"
	// HoldOnClaimLoss starts no pod without the claim that it had.
	HoldOnClaimLoss ClaimLossPolicy = "Hold"
)

// InstanceGroup names the group of an Instance.
type InstanceGroup struct {
	// Kind of the group.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`
	// Name of the group.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
}

// VolumeClaimTemplate is one claim of an Instance.
type VolumeClaimTemplate struct {
	// Name of the volume.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=20
	Name string `json:"name"`
	// Storage asked for.
	Storage resource.Quantity `json:"storage"`
	// StorageClassName of the claim; unset means the default class.
	// +optional
	StorageClassName *string `json:"storageClassName,omitempty"`
	// VolumeAttributesClassName of the claim; unset means the one that it has.
	// +optional
	VolumeAttributesClassName *string `json:"volumeAttributesClassName,omitempty"`
}

// InstanceStatus is written by two: the instance operator reports everything of
// Kubernetes, the group's operator reports Member and the member conditions.
type InstanceStatus struct {
	// ObservedGeneration is the generation that the instance operator computed
	// this status for.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// OperatorVersion is the version of the instance operator that wrote its part of
	// this status. Not updated alone, except once after an operator upgrade.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	OperatorVersion string `json:"operatorVersion,omitempty"`
	// Conditions, by type. docs/conditions.md explains each.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Reason of Stalled, Ready or UpToDate, whichever keeps the object from what its
	// spec asks for, in this order; LeadersEvicted if all is well but for the member
	// leading nothing on request; empty if there is nothing to report. For kubectl get.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Message that goes with Reason, of at most 80 characters; the condition has all
	// of it. For kubectl get -o wide.
	// +optional
	Message string `json:"message,omitempty"`
	// PodUID of the pod that exists now.
	// +optional
	PodUID types.UID `json:"podUID,omitempty"`
	// PodIP of the pod that exists now.
	// +optional
	PodIP string `json:"podIP,omitempty"`
	// NodeName that the pod is bound to.
	// +optional
	NodeName string `json:"nodeName,omitempty"`
	// Revision that the pod runs.
	// +optional
	Revision string `json:"revision,omitempty"`
	// MadeFrom is the revision that the pod was made from, if it was brought to
	// Revision while it ran: its files are still those of MadeFrom.
	// +optional
	MadeFrom string `json:"madeFrom,omitempty"`
	// Volumes, one per claim.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Volumes []VolumeStatus `json:"volumes,omitempty"`
	// Member is what the group's operator knows of the member in the database.
	// +optional
	Member *MemberStatus `json:"member,omitempty"`
}

// VolumeStatus is the state of one claim.
type VolumeStatus struct {
	// Name of the volume.
	Name string `json:"name"`
	// ClaimName is the name of the claim.
	ClaimName string `json:"claimName"`
	// ClaimUID of the claim that the pod was started with. Written before the
	// pod is made, so that a later claim of the same name is known to be
	// another one.
	// +optional
	ClaimUID types.UID `json:"claimUID,omitempty"`
	// Phase of the claim: Pending, Bound, Lost, Missing.
	// +optional
	Phase string `json:"phase,omitempty"`
	// Requested is the size that the claim asks for.
	// +optional
	Requested *resource.Quantity `json:"requested,omitempty"`
	// Capacity that the volume has.
	// +optional
	Capacity *resource.Quantity `json:"capacity,omitempty"`
	// StorageClassName of the claim.
	// +optional
	StorageClassName string `json:"storageClassName,omitempty"`
	// VolumeAttributesClassName that the volume has, as far as Kubernetes says.
	// +optional
	VolumeAttributesClassName string `json:"volumeAttributesClassName,omitempty"`
	// Change that the volume is going through, as the claim's own condition calls
	// it (Resizing, FileSystemResizePending, ControllerResizeError,
	// NodeResizeError, ModifyingVolume, ModifyVolumeError), or the reason for
	// which it cannot be had (QuotaExceeded, LimitRangeExceeded, ClaimRejected,
	// VolumeAttributesClassMissing, VolumeAttributesUnsupported). Empty when the
	// volume is what the spec asks for.
	// +optional
	Change string `json:"change,omitempty"`
	// PersistentVolume that the claim is bound to, once it has been looked at.
	// +optional
	PersistentVolume string `json:"persistentVolume,omitempty"`
	// NodeBound says that the volume can be used on some nodes only, so that a
	// pod with it may find no other node to run on.
	// +optional
	NodeBound bool `json:"nodeBound,omitempty"`
	// Nodes that the volume can be used on, by name or by their label
	// kubernetes.io/hostname, if it is tied to these: when all of them are gone, so
	// is the volume.
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Nodes []string `json:"nodes,omitempty"`
	// NodeSelectors are label selectors of the nodes that the volume can be used on,
	// of which a node has to match one, such as those of its zone. Empty if it can be
	// used everywhere, or is tied to single nodes.
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +optional
	NodeSelectors []string `json:"nodeSelectors,omitempty"`
}

// MemberStarting is the State of a member that does not serve yet, where the database keeps no
// list of its members.
const MemberStarting = "Starting"

// MemberStatus is a member as the database knows it.
type MemberStatus struct {
	// ID of the member or store, in decimal.
	// +optional
	ID string `json:"id,omitempty"`
	// Name of the member.
	// +optional
	Name string `json:"name,omitempty"`
	// State in the component's own words (PD: Leader, Follower; stores: Up,
	// Disconnected, Down, Offline, Tombstone). It may be some seconds old.
	// +optional
	State string `json:"state,omitempty"`
	// Address that it advertises.
	// +optional
	Address string `json:"address,omitempty"`
}

// Instance is one member of a group: one pod and its claims.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=tgi,categories={tidb-all}
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Up-to-date",type=string,JSONPath=`.status.conditions[?(@.type=="UpToDate")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.reason`
// +kubebuilder:printcolumn:name="Member",type=string,JSONPath=`.status.member.state`
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.status.nodeName`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Group",type=string,priority=1,JSONPath=`.spec.group.name`
// +kubebuilder:printcolumn:name="ID",type=string,priority=1,JSONPath=`.status.member.id`
// +kubebuilder:printcolumn:name="Revision",type=string,priority=1,JSONPath=`.status.revision`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.message`
type Instance struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is written by the operator of the group.
	Spec InstanceSpec `json:"spec"`
	// Status is written by the instance operator and the group's operator.
	// +optional
	Status InstanceStatus `json:"status,omitempty"`
}

// InstanceList is a list of Instances.
//
// +kubebuilder:object:root=true
type InstanceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Instance `json:"items"`
}
