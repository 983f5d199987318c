package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// KindBackupSchedule is the kind of a BackupSchedule.
const KindBackupSchedule = "BackupSchedule"

// ConcurrencyPolicy says what becomes of a run that is due while another one has not
// ended.
type ConcurrencyPolicy string

const (
	// ConcurrencyForbid leaves it out.
	ConcurrencyForbid ConcurrencyPolicy = "Forbid"
	// ConcurrencyAllow has it begin.
	ConcurrencyAllow ConcurrencyPolicy = "Allow"
)

// KeepBackups says how many days, weeks and months keep their newest complete Backup: the last
// ones of which there is any, in the time zone of the schedule.
type KeepBackups struct {
	// Daily is how many days.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +optional
	Daily *int32 `json:"daily,omitempty"`
	// Weekly is how many weeks, which begin on Monday.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=500
	// +optional
	Weekly *int32 `json:"weekly,omitempty"`
	// Monthly is how many months.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=120
	// +optional
	Monthly *int32 `json:"monthly,omitempty"`
}

// BackupScheduleSpec is what is asked for.
//
// +kubebuilder:validation:XValidation:rule="!has(self.keep) || has(self.maxBackups) || has(self.maxAge)",message="keep goes with maxBackups or maxAge: without them all Backups stay"
type BackupScheduleSpec struct {
	// Schedule says when a backup begins, as five fields of cron: minute, hour, day of
	// month, month, day of week.
	// +kubebuilder:validation:MinLength=9
	// +kubebuilder:validation:MaxLength=64
	Schedule string `json:"schedule"`
	// TimeZone of the schedule, by its IANA name. Default: UTC.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	TimeZone string `json:"timeZone,omitempty"`
	// Paused has no backup begin and none be deleted. Those that run go on. If times of the
	// schedule pass meanwhile, one backup begins when it ends.
	// +optional
	Paused bool `json:"paused,omitempty"`
	// ConcurrencyPolicy says what becomes of a backup that is due while one of this
	// schedule has not ended: Forbid leaves it out, Allow has it begin. Default: Forbid.
	// +kubebuilder:validation:Enum=Forbid;Allow
	// +kubebuilder:default=Forbid
	// +optional
	ConcurrencyPolicy ConcurrencyPolicy `json:"concurrencyPolicy,omitempty"`
	// MaxBackups is how many complete Backups of this schedule are kept. Older ones are
	// deleted, with their files if their cleanupPolicy is Delete. Default: all.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +optional
	MaxBackups *int32 `json:"maxBackups,omitempty"`
	// MaxAge of complete Backups of this schedule, such as 720h. Older ones are deleted
	// like those beyond maxBackups; the newest complete one never is. Default: none.
	// +kubebuilder:validation:Pattern=`^([0-9]{1,5}(\.[0-9]{1,9})?(ms|s|m|h)){1,4}$`
	// +kubebuilder:validation:Type=string
	// +optional
	MaxAge *metav1.Duration `json:"maxAge,omitempty"`
	// Keep has older Backups stay that maxBackups or maxAge would delete.
	// +optional
	Keep *KeepBackups `json:"keep,omitempty"`
	// Template of the Backups.
	Template BackupTemplate `json:"template"`
}

// BackupScheduleStatus is what the backup operator has found.
//
// It has one writer, which writes it as a whole.
// +structType=atomic
type BackupScheduleStatus struct {
	// ObservedGeneration is the generation that this status was computed for.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// OperatorVersion is the version of the operator that wrote this status. Not updated
	// alone, except once after an operator upgrade.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	OperatorVersion string `json:"operatorVersion,omitempty"`
	// Conditions, by type. docs/conditions.md explains each. Ready is: the backup that
	// ended last is complete, or none has ended yet.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Reason of Stalled or Ready; empty if there is nothing to report. For kubectl get.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Message that goes with Reason, of at most 80 characters; the condition has all
	// of it. For kubectl get -o wide.
	// +optional
	Message string `json:"message,omitempty"`
	// LastRun is the time of the schedule that a backup was last made for, or left out
	// because one was running.
	// +optional
	LastRun *metav1.Time `json:"lastRun,omitempty"`
	// NextRun is the next time of the schedule; none while it is paused.
	// +optional
	NextRun *metav1.Time `json:"nextRun,omitempty"`
	// LastBackup is the newest Backup that is complete.
	// +optional
	LastBackup string `json:"lastBackup,omitempty"`
	// LastBackupTime is when that Backup was completed.
	// +optional
	LastBackupTime *metav1.Time `json:"lastBackupTime,omitempty"`
	// Complete is how many complete Backups of this schedule there are.
	// +optional
	Complete int32 `json:"complete,omitempty"`
}

// SetOperatorVersion says which version of the operator writes the status.
func (s *BackupScheduleStatus) SetOperatorVersion(version string) { s.OperatorVersion = version }

// BackupSchedule makes Backups again and again, and deletes old ones.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=tgbs,categories={tidb-groups,tidb-all}
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.spec.template.tidbGroup.name`
// +kubebuilder:printcolumn:name="Schedule",type=string,JSONPath=`.spec.schedule`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.reason`
// +kubebuilder:printcolumn:name="Last-good",type=date,JSONPath=`.status.lastBackupTime`
// +kubebuilder:printcolumn:name="Next",type=string,JSONPath=`.status.nextRun`
// +kubebuilder:printcolumn:name="Kept",type=integer,JSONPath=`.status.complete`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Backup",type=string,priority=1,JSONPath=`.status.lastBackup`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.message`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 32 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must be at most 32 characters of a-z, 0-9 and -, and begin with a letter: Backups are named after it"
type BackupSchedule struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what is asked for.
	Spec BackupScheduleSpec `json:"spec"`
	// Status is what the backup operator has found.
	// +optional
	Status BackupScheduleStatus `json:"status,omitempty"`
}

// BackupScheduleList is a list of BackupSchedules.
//
// +kubebuilder:object:root=true
type BackupScheduleList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []BackupSchedule `json:"items"`
}
