package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// KindLogBackup is the kind of a LogBackup.
const KindLogBackup = "LogBackup"

// LogState is what the task of a LogBackup is to do.
type LogState string

const (
	// LogRunning has every TiKV write its changes to the storage.
	LogRunning LogState = "Running"
	// LogPaused has it write none for the time being.
	LogPaused LogState = "Paused"
	// LogStopped has the cluster know no task.
	LogStopped LogState = "Stopped"
)

// LogBackupSpec is what is asked for. Which cluster is written, and where to, cannot be
// changed.
//
// +kubebuilder:validation:XValidation:rule="self.tidbGroup == oldSelf.tidbGroup && self.storage == oldSelf.storage",message="which cluster a LogBackup writes, and where to, cannot be changed; create another LogBackup instead"
// +kubebuilder:validation:XValidation:rule="!has(self.storage.pvc) && (!has(self.storage.s3) || !has(self.storage.s3.caSecret))",message="a LogBackup needs storage.s3 without caSecret, gcs or azblob: every TiKV writes files itself, with the authorities of its image"
// +kubebuilder:validation:XValidation:rule="(!has(self.storage.s3) || has(self.storage.s3.secret)) && (!has(self.storage.gcs) || has(self.storage.gcs.secret))",message="a LogBackup needs a secret in storage: every TiKV writes files itself, and has not the identity of the run's pod"
// +kubebuilder:validation:XValidation:rule="!has(self.truncateBefore) || !has(self.truncateWith)",message="truncateBefore and truncateWith exclude each other"
type LogBackupSpec struct {
	// TiDBGroup of the namespace whose cluster is written.
	TiDBGroup LocalReference `json:"tidbGroup"`
	// Storage that every TiKV writes to.
	Storage Storage `json:"storage"`
	// State that the task is to be in. Running: changes are written. Paused: none are, and
	// PD keeps what was not written for 24 hours. Stopped: the cluster knows no task; one
	// that runs again goes on in the same folder, if old data is there still. Default:
	// Running.
	// +kubebuilder:validation:Enum=Running;Paused;Stopped
	// +kubebuilder:default=Running
	// +optional
	State LogState `json:"state,omitempty"`
	// TruncateBefore is a time: what is older is deleted from the log, and no Restore can
	// go back to it any more. Default: nothing is deleted.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	// +optional
	TruncateBefore *metav1.Time `json:"truncateBefore,omitempty"`
	// TruncateWith is a BackupSchedule of the namespace: what is older than the oldest of
	// its complete physical Backups that copy everything is deleted from the log. Default: none.
	// +optional
	TruncateWith *LocalReference `json:"truncateWith,omitempty"`
	// CheckEvery is how often a Job looks how far the log is, and brings the task back to
	// the state that is asked for. Default: 5m.
	// +kubebuilder:validation:Pattern=`^([0-9]{1,5}(\.[0-9]{1,9})?(ms|s|m|h)){1,4}$`
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1m') && duration(self) <= duration('24h')",message="checkEvery must be between 1m and 24h"
	// +kubebuilder:default="5m"
	// +optional
	CheckEvery *metav1.Duration `json:"checkEvery,omitempty"`
	RunPod     `json:",inline"`
	// CleanupPolicy says what becomes of the files when the LogBackup is deleted: Retain
	// leaves them, Delete deletes them. Default: Retain.
	// +kubebuilder:validation:Enum=Retain;Delete
	// +kubebuilder:default=Retain
	// +optional
	CleanupPolicy CleanupPolicy `json:"cleanupPolicy,omitempty"`
}

// LogBackupStatus is what the backup operator has found. Its state is Waiting until the task
// was seen, and then that of the task.
//
// It has one writer, which writes it as a whole.
// +structType=atomic
type LogBackupStatus struct {
	RunStatus `json:",inline"`
	// LogStart is the time stamp of TiDB that the log begins at.
	// +kubebuilder:validation:MaxLength=20
	// +optional
	LogStart string `json:"logStart,omitempty"`
	// TaskStart is the time stamp of TiDB that the task of now was started at, or the last one
	// if there is none: one that was stopped goes on where the log ended.
	// +kubebuilder:validation:MaxLength=20
	// +optional
	TaskStart string `json:"taskStart,omitempty"`
	// Checkpoint is the time stamp of TiDB up to which the log is complete.
	// +kubebuilder:validation:MaxLength=20
	// +optional
	Checkpoint string `json:"checkpoint,omitempty"`
	// CheckpointTime is that time stamp as a time. Its age is how much would be lost.
	// +optional
	CheckpointTime *metav1.Time `json:"checkpointTime,omitempty"`
	// CheckpointLag is how old the checkpoint was when it was looked at, such as 2m5s.
	// +optional
	CheckpointLag string `json:"checkpointLag,omitempty"`
	// TruncatedTo is the time stamp of TiDB before which the log was deleted.
	// +kubebuilder:validation:MaxLength=20
	// +optional
	TruncatedTo string `json:"truncatedTo,omitempty"`
	// Failures is how many Jobs have failed since the last one that did not.
	// +optional
	Failures int32 `json:"failures,omitempty"`
	// PDGroup of the cluster that the task was started in.
	// +optional
	PDGroup string `json:"pdGroup,omitempty"`
	// RestoredBy is the Restore by BR that has written the cluster after the task was stopped. The
	// log lacks what it wrote, and does not go on.
	// +optional
	RestoredBy string `json:"restoredBy,omitempty"`
}

// LogBackup has every TiKV of a cluster write its changes to a bucket, so that a Restore can
// bring back any moment since a physical Backup.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=tglb,categories={tidb-groups,tidb-all}
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.spec.tidbGroup.name`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.reason`
// +kubebuilder:printcolumn:name="Checkpoint",type=date,JSONPath=`.status.checkpointTime`
// +kubebuilder:printcolumn:name="Lag",type=string,JSONPath=`.status.checkpointLag`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="From",type=string,priority=1,JSONPath=`.status.logStart`
// +kubebuilder:printcolumn:name="Truncated",type=string,priority=1,JSONPath=`.status.truncatedTo`
// +kubebuilder:printcolumn:name="Location",type=string,priority=1,JSONPath=`.status.location`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.message`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 48 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must be at most 48 characters of a-z, 0-9 and -, and begin with a letter: Jobs, the folder and the task are named after it"
type LogBackup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what is asked for.
	Spec LogBackupSpec `json:"spec"`
	// Status is what the backup operator has found.
	// +optional
	Status LogBackupStatus `json:"status,omitempty"`
}

// LogBackupList is a list of LogBackups.
//
// +kubebuilder:object:root=true
type LogBackupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []LogBackup `json:"items"`
}

// RunKind implements Run.
func (l *LogBackup) RunKind() string { return KindLogBackup }

// GetRunStatus implements Run.
func (l *LogBackup) GetRunStatus() *RunStatus { return &l.Status.RunStatus }

// GetTiDBGroup implements Run.
func (l *LogBackup) GetTiDBGroup() string { return l.Spec.TiDBGroup.Name }

// GetLogin implements Run: BR connects only to PD and TiKV.
func (l *LogBackup) GetLogin() Login { return Login{} }

// GetRunPod implements Run.
func (l *LogBackup) GetRunPod() RunPod { return l.Spec.RunPod }

// GetLogical implements Run.
func (l *LogBackup) GetLogical() LogicalRun { return LogicalRun{} }

// GetPhysical implements Run.
func (l *LogBackup) GetPhysical() PhysicalRun { return PhysicalRun{} }
