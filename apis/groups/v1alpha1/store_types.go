package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// StoreSpec is what groups of stores let a user say about the
// life of their members beside ComponentSpec.
type StoreSpec struct {
	// ScaleInParallelism is how many stores a scale-in may remove at a time.
	// Default: 1.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +optional
	ScaleInParallelism *int32 `json:"scaleInParallelism,omitempty"`
	// Failover says what to do about stores that have died. Default: nothing.
	// +optional
	Failover *Failover `json:"failover,omitempty"`
	// Rebalance is one of PD's location-labels, such as zone: if the stores of the
	// group are unevenly spread over the places that it and the labels before it
	// name, a store is added and, when it is Ready, one leaves the fullest place,
	// until none has two more than another one. Where a new store comes is the
	// scheduler's choice, as topologySpreadConstraints tell it: if it came where it
	// does not help, it stays for now, no other one is added, and status says so.
	// Unset: stores that run are not moved.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[$]?[A-Za-z0-9]([-A-Za-z0-9_./]*[A-Za-z0-9])?$')",message="rebalance must be one of PD's location-labels, such as zone: letters, digits and -_./, a letter or digit first and last"
	// +optional
	Rebalance string `json:"rebalance,omitempty"`
}

// FailoverPolicy says what is done about a dead store.
// +kubebuilder:validation:Enum=None;Add;Replace
type FailoverPolicy string

const (
	// NoFailover leaves dead stores to a user.
	NoFailover FailoverPolicy = "None"
	// AddOnFailover adds a store for each dead one, and removes one again when
	// the dead one is back.
	AddOnFailover FailoverPolicy = "Add"
	// ReplaceOnFailover adds a store for each dead one and takes the dead one out
	// of the cluster for good.
	ReplaceOnFailover FailoverPolicy = "Replace"
)

// Failover says what to do about stores that have died. A store is dead when it
// is neither Up for PD nor its pod Ready for long.
type Failover struct {
	// Policy is None, Add (a store more for each dead one, until that is back) or
	// Replace (a new store for each dead one, which never comes back).
	// +kubebuilder:default=None
	// +optional
	Policy FailoverPolicy `json:"policy,omitempty"`
	// After is for how long a store must have been dead, such as 5m.
	// Default: 5m.
	// +kubebuilder:validation:Pattern=`^([0-9]{1,5}(\.[0-9]{1,9})?(ms|s|m|h)){1,4}$`
	// +kubebuilder:validation:Type=string
	// +optional
	After *metav1.Duration `json:"after,omitempty"`
	// Max is how many stores are added at most; of more dead stores than that
	// none is replaced, because the cause must be another one. Default: 3.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +optional
	Max *int32 `json:"max,omitempty"`
}

// StoreGroup is implemented by the kinds of groups whose members are stores.
// +kubebuilder:object:generate=false
type StoreGroup interface {
	Group
	// GetStoreSpec returns the part of the spec that groups of stores share.
	GetStoreSpec() *StoreSpec
	// GetStoreStatus returns what groups of stores report beside GetGroupStatus.
	GetStoreStatus() *StoreGroupStatus
}
