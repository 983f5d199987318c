package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Disruption says when members that serve may be stopped on purpose: restarted,
// moved or removed. Members that do not serve may always be replaced. It is applied
// as a whole: server-side apply sets a map to null when its last item is removed,
// and {paused: false} is empty when it is encoded.
// +structType=atomic
type Disruption struct {
	// Paused puts off every step that would stop a member that serves. What has
	// begun is brought to its end; everything else goes on.
	// +optional
	Paused bool `json:"paused,omitempty"`
	// UpdateAtMost is how many members get a new revision before the operator
	// waits for a user: a canary. Unset: all.
	// +kubebuilder:validation:Minimum=0
	// +optional
	UpdateAtMost *int32 `json:"updateAtMost,omitempty"`
	// Windows in which such a step may begin. None: at any time.
	// +kubebuilder:validation:MaxItems=8
	// +listType=atomic
	// +optional
	Windows []MaintenanceWindow `json:"windows,omitempty"`
}

// MaintenanceWindow is a time that comes again and again.
type MaintenanceWindow struct {
	// Schedule says when the window opens, as five fields of cron: minute, hour,
	// day of month, month, day of week.
	// +kubebuilder:validation:MinLength=9
	// +kubebuilder:validation:MaxLength=64
	Schedule string `json:"schedule"`
	// Duration that the window stays open, such as 2h.
	// +kubebuilder:validation:Pattern=`^([0-9]{1,5}(\.[0-9]{1,9})?(ms|s|m|h)){1,4}$`
	// +kubebuilder:validation:Type=string
	Duration metav1.Duration `json:"duration"`
	// TimeZone of the schedule, by its IANA name. Default: UTC.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	TimeZone string `json:"timeZone,omitempty"`
}
