package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// KindRestore is the kind of a Restore.
const KindRestore = "Restore"

// Run is an object that is done by Jobs: a Backup or a Restore by one, a LogBackup by one
// after another.
// +kubebuilder:object:generate=false
type Run interface {
	metav1.Object
	runtime.Object
	// RunKind returns the kind's name.
	RunKind() string
	// GetRunStatus returns the part of the status that all have.
	GetRunStatus() *RunStatus
	// GetTiDBGroup returns the name of the TiDBGroup that the run connects to.
	GetTiDBGroup() string
	// GetLogin returns as whom it connects.
	GetLogin() Login
	// GetRunPod returns how its pod looks.
	GetRunPod() RunPod
	// GetLogical returns how Dumpling or TiDB Lightning works, if the run is a logical one.
	GetLogical() LogicalRun
	// GetPhysical returns how BR works, if the run is a physical one.
	GetPhysical() PhysicalRun
}

// RestoreSource is what is restored: exactly one of its fields.
//
// +kubebuilder:validation:XValidation:rule="(has(self.backup) ? 1 : 0) + (has(self.logBackup) ? 1 : 0) + (has(self.storage) ? 1 : 0) == 1",message="from needs exactly one of backup, logBackup and storage"
// +kubebuilder:validation:XValidation:rule="has(self.storage) == has(self.folder)",message="from.folder goes with from.storage: it is the folder of one backup, named as its Backup was"
// +kubebuilder:validation:XValidation:rule="!has(self.logFolder) || has(self.storage)",message="from.logFolder goes with from.storage: it is the folder of a log, named as its LogBackup was"
type RestoreSource struct {
	// Backup of the namespace. It has to be complete.
	// +optional
	Backup *LocalReference `json:"backup,omitempty"`
	// LogBackup of the namespace: its log is restored, and before it the newest complete
	// Backup of type Physical that copies all of its cluster into the same bucket and is no
	// newer than pointInTime.
	// +optional
	LogBackup *LocalReference `json:"logBackup,omitempty"`
	// Storage that the files of a backup are in whose Backup is not there.
	// +optional
	Storage *Storage `json:"storage,omitempty"`
	// Folder of that backup in the storage: the name that its Backup had.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z]([-a-z0-9]*[a-z0-9])?$`
	// +optional
	Folder string `json:"folder,omitempty"`
	// LogFolder of the storage has the log that is restored after that backup: the name that
	// its LogBackup had. Default: no log.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z]([-a-z0-9]*[a-z0-9])?$`
	// +optional
	LogFolder string `json:"logFolder,omitempty"`
}

// RestoreSpec is what is asked for. It is done once: what is restored, and where to, cannot
// be changed. How the run connects, what its pod looks like and allowNonEmpty can be
// corrected until it has begun.
//
// +kubebuilder:validation:XValidation:rule="self.tidbGroup == oldSelf.tidbGroup && self.from == oldSelf.from && has(self.type) == has(oldSelf.type) && (!has(self.type) || self.type == oldSelf.type) && has(self.filters) == has(oldSelf.filters) && (!has(self.filters) || self.filters == oldSelf.filters) && has(self.pointInTime) == has(oldSelf.pointInTime) && (!has(self.pointInTime) || self.pointInTime == oldSelf.pointInTime)",message="a Restore is done once: what is restored, and where to, cannot be changed; create another Restore instead"
// +kubebuilder:validation:XValidation:rule="!has(self.type) || has(self.from.storage)",message="type goes with from.storage: that of a Backup is known"
// +kubebuilder:validation:XValidation:rule="!has(self.type) || self.type != 'Physical' || !has(self.from.storage) || !has(self.from.storage.pvc) && (!has(self.from.storage.s3) || has(self.from.storage.s3.secret) && !has(self.from.storage.s3.caSecret)) && (!has(self.from.storage.gcs) || has(self.from.storage.gcs.secret))",message="type Physical needs from.storage.s3, gcs or azblob with a secret, and without caSecret: every TiKV reads the files itself"
// +kubebuilder:validation:XValidation:rule="!has(self.logical) || !has(self.type) || self.type != 'Physical'",message="logical goes with type: Logical"
// +kubebuilder:validation:XValidation:rule="!has(self.physical) || has(self.from.backup) || has(self.type) && self.type == 'Physical'",message="physical goes with type: Physical"
// +kubebuilder:validation:XValidation:rule="!has(self.pointInTime) || has(self.from.logBackup) || has(self.from.logFolder)",message="pointInTime goes with from.logBackup, or with from.logFolder: without a log there is no moment but that of the backup"
// +kubebuilder:validation:XValidation:rule="!has(self.from.logFolder) || has(self.type) && self.type == 'Physical'",message="from.logFolder goes with type: Physical"
// +kubebuilder:validation:XValidation:rule="!has(self.from.logBackup) && !has(self.from.logFolder) || !has(self.filters) && !has(self.physical) && !has(self.logical)",message="filters, physical and logical do not go with a log: BR restores all of it, as it does by default"
type RestoreSpec struct {
	// TiDBGroup of the namespace through which the database is written.
	TiDBGroup LocalReference `json:"tidbGroup"`
	// From says what is restored.
	From RestoreSource `json:"from"`
	// PointInTime is the moment that a log is restored to, to the millisecond. Default: the
	// last one that the log has.
	// +optional
	PointInTime *Moment `json:"pointInTime,omitempty"`
	// Type of the backup in from.storage, as its Backup had it. Default: Logical.
	// +kubebuilder:validation:Enum=Logical;Physical
	// +optional
	Type BackupType `json:"type,omitempty"`
	// Physical says how BR works, where the backup is a physical one.
	// +optional
	Physical *PhysicalRun `json:"physical,omitempty"`
	// Logical says how TiDB Lightning works, where the backup is a logical one.
	// +optional
	Logical *LogicalRun `json:"logical,omitempty"`
	Login   `json:",inline"`
	// Filters choose what is restored of the backup, as TiDB's table filter has it, such
	// as shop.* and !shop.log. Default: all of it.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	// +listType=atomic
	// +optional
	Filters []string `json:"filters,omitempty"`
	// AllowNonEmpty lets the run write into a cluster that has databases of users. A
	// row that is there already makes it fail, but doubles in a table without a unique key.
	// Default: false.
	// +optional
	AllowNonEmpty bool `json:"allowNonEmpty,omitempty"`
	RunPod        `json:",inline"`
}

// RestoreStatus is what the backup operator has found.
//
// It has one writer, which writes it as a whole.
// +structType=atomic
type RestoreStatus struct {
	RunStatus `json:",inline"`
	// Backup that is restored before the log, if spec.from.logBackup is set.
	// +optional
	Backup string `json:"backup,omitempty"`
}

// Restore writes a copy back into a database.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=tgr,categories={tidb-groups,tidb-all}
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.spec.tidbGroup.name`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.reason`
// +kubebuilder:printcolumn:name="Progress",type=string,JSONPath=`.status.progress`
// +kubebuilder:printcolumn:name="Size",type=string,JSONPath=`.status.size`
// +kubebuilder:printcolumn:name="Completed",type=date,JSONPath=`.status.completionTime`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="TSO",type=string,priority=1,JSONPath=`.status.tso`
// +kubebuilder:printcolumn:name="Location",type=string,priority=1,JSONPath=`.status.location`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.message`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 48 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must be at most 48 characters of a-z, 0-9 and -, and begin with a letter: Jobs are named after it"
type Restore struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what is asked for.
	Spec RestoreSpec `json:"spec"`
	// Status is what the backup operator has found.
	// +optional
	Status RestoreStatus `json:"status,omitempty"`
}

// RestoreList is a list of Restores.
//
// +kubebuilder:object:root=true
type RestoreList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Restore `json:"items"`
}

// RunKind implements Run.
func (r *Restore) RunKind() string { return KindRestore }

// GetRunStatus implements Run.
func (r *Restore) GetRunStatus() *RunStatus { return &r.Status.RunStatus }

// GetTiDBGroup implements Run.
func (r *Restore) GetTiDBGroup() string { return r.Spec.TiDBGroup.Name }

// GetLogin implements Run.
func (r *Restore) GetLogin() Login { return r.Spec.Login }

// GetRunPod implements Run.
func (r *Restore) GetRunPod() RunPod { return r.Spec.RunPod }

// GetLogical implements Run.
func (r *Restore) GetLogical() LogicalRun { return valueOf(r.Spec.Logical) }

// GetPhysical implements Run.
func (r *Restore) GetPhysical() PhysicalRun { return valueOf(r.Spec.Physical) }
