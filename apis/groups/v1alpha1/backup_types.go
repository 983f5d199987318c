package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// KindBackup is the kind of a Backup.
const KindBackup = "Backup"

// BackupType is how a database is copied.
type BackupType string

const (
	// BackupLogical writes SQL files with Dumpling.
	BackupLogical BackupType = "Logical"
	// BackupPhysical has TiKV write its data, with BR.
	BackupPhysical BackupType = "Physical"
)

// CleanupPolicy says what becomes of the files of a Backup that is deleted.
type CleanupPolicy string

const (
	// CleanupRetain leaves the files.
	CleanupRetain CleanupPolicy = "Retain"
	// CleanupDelete deletes the files.
	CleanupDelete CleanupPolicy = "Delete"
)

// RunState is how far the run of a Backup or a Restore is.
type RunState string

const (
	// RunWaiting says that it has not begun, or that it has to begin again.
	RunWaiting RunState = "Waiting"
	// RunRunning says that its Job exists and has not ended.
	RunRunning RunState = "Running"
	// RunComplete says that all was copied.
	RunComplete RunState = "Complete"
	// RunFailed says that it ended otherwise. It is not run again.
	RunFailed RunState = "Failed"
	// RunPaused says that the task of a LogBackup writes nothing for the time being.
	RunPaused RunState = "Paused"
	// RunStopped says that the cluster knows no task of a LogBackup.
	RunStopped RunState = "Stopped"
)

// Storage is where the files of backups are: exactly one of its fields.
//
// +kubebuilder:validation:XValidation:rule="(has(self.s3) ? 1 : 0) + (has(self.gcs) ? 1 : 0) + (has(self.azblob) ? 1 : 0) + (has(self.pvc) ? 1 : 0) == 1",message="storage needs exactly one of s3, gcs, azblob and pvc"
type Storage struct {
	// S3 is a bucket of Amazon S3, or of a server that speaks its protocol.
	// +optional
	S3 *S3Storage `json:"s3,omitempty"`
	// GCS is a bucket of Google Cloud Storage.
	// +optional
	GCS *GCSStorage `json:"gcs,omitempty"`
	// Azblob is a container of Azure Blob Storage.
	// +optional
	Azblob *AzblobStorage `json:"azblob,omitempty"`
	// PVC is a volume that a claim of the namespace is bound to.
	// +optional
	PVC *PVCStorage `json:"pvc,omitempty"`
}

// S3Storage is a place in a bucket.
//
// +kubebuilder:validation:XValidation:rule="!has(self.caSecret) || has(self.endpoint) && self.endpoint.startsWith('https://')",message="caSecret goes with an endpoint that begins with https://"
// +kubebuilder:validation:XValidation:rule="!has(self.caSecret) || has(self.secret)",message="caSecret goes with secret: the pods of a role connect to Amazon too, whose certificate is not of your authority"
type S3Storage struct {
	// Bucket that exists already.
	// +kubebuilder:validation:Pattern=`^[a-z0-9][-a-z0-9.]{1,61}[a-z0-9]$`
	// +kubebuilder:validation:MaxLength=63
	Bucket string `json:"bucket"`
	// Prefix below which each backup gets a folder of its own, named as it is. Default:
	// none.
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_][-A-Za-z0-9_.]*(/[A-Za-z0-9_][-A-Za-z0-9_.]*)*$`
	// +optional
	Prefix string `json:"prefix,omitempty"`
	// Endpoint of a server that is not Amazon's, with http:// or https://.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^https?://[-A-Za-z0-9.:\[\]]+$`
	// +optional
	Endpoint string `json:"endpoint,omitempty"`
	// Region of the bucket. Default: us-east-1.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9][-a-z0-9]*$`
	// +optional
	Region string `json:"region,omitempty"`
	// ForcePathStyle puts the bucket into the path of a URL rather than before the name
	// of the server, as servers want that are not Amazon's. Default: true.
	// +kubebuilder:default=true
	// +optional
	ForcePathStyle *bool `json:"forcePathStyle,omitempty"`
	// CASecret has, under a key, the certificate in PEM of the authority that has signed
	// the endpoint's, if that is one of your own. Default: those that the images of the
	// tools know.
	// +optional
	CASecret *KeyReference `json:"caSecret,omitempty"`
	// Secret of the namespace with the keys access_key and secret_key. The operators
	// never read it: the pods of the run do. Default: the role that Amazon EKS gives to the
	// pods of serviceAccountName.
	// +optional
	Secret *LocalReference `json:"secret,omitempty"`
}

// GCSStorage is a place in a bucket of Google Cloud Storage.
type GCSStorage struct {
	// Bucket that exists already.
	// +kubebuilder:validation:Pattern=`^[a-z0-9][-_a-z0-9.]{1,220}[a-z0-9]$`
	// +kubebuilder:validation:MaxLength=222
	Bucket string `json:"bucket"`
	// Prefix below which each backup gets a folder of its own, named as it is. Default:
	// none.
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_][-A-Za-z0-9_.]*(/[A-Za-z0-9_][-A-Za-z0-9_.]*)*$`
	// +optional
	Prefix string `json:"prefix,omitempty"`
	// Secret of the namespace with the key credentials.json, which has the credentials of a
	// service account. The operators never read it: the pods of the run do. Default: the
	// identity that Google gives to the pods of serviceAccountName.
	// +optional
	Secret *LocalReference `json:"secret,omitempty"`
}

// AzblobStorage is a place in a container of Azure Blob Storage.
type AzblobStorage struct {
	// Account that the container is in.
	// +kubebuilder:validation:Pattern=`^[a-z0-9]{3,24}$`
	// +kubebuilder:validation:MaxLength=24
	Account string `json:"account"`
	// Container that exists already.
	// +kubebuilder:validation:Pattern=`^[a-z0-9](-?[a-z0-9]){2,62}$`
	// +kubebuilder:validation:MaxLength=63
	Container string `json:"container"`
	// Prefix below which each backup gets a folder of its own, named as it is. Default:
	// none.
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_][-A-Za-z0-9_.]*(/[A-Za-z0-9_][-A-Za-z0-9_.]*)*$`
	// +optional
	Prefix string `json:"prefix,omitempty"`
	// Secret of the namespace with the key account_key; or, for logical backups, client_id,
	// tenant_id and client_secret of an application of Entra ID. The operators never read it:
	// the pods of the run do. The tools know no other identity of Azure's.
	Secret LocalReference `json:"secret"`
}

// PVCStorage is a folder of a volume.
type PVCStorage struct {
	// ClaimName of a PersistentVolumeClaim of the namespace. It must be there already.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	ClaimName string `json:"claimName"`
	// Path of a folder of the volume in which each backup gets a folder of its own,
	// named as it is. Default: the volume's root.
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_][-A-Za-z0-9_.]*(/[A-Za-z0-9_][-A-Za-z0-9_.]*)*$`
	// +optional
	Path string `json:"path,omitempty"`
}

// Login is as whom a run connects to the database.
//
// +kubebuilder:validation:XValidation:rule="!has(self.user) || has(self.passwordSecret)",message="a user other than root needs passwordSecret: a Secret and a key with the password"
type Login struct {
	// User to connect as. Default: root.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	// +optional
	User string `json:"user,omitempty"`
	// PasswordSecret has the password under a key, one line. The operators never read
	// it: the pod of the run does. Default: no password.
	// +optional
	PasswordSecret *KeyReference `json:"passwordSecret,omitempty"`
}

// RunPod says how the pods of a run look.
type RunPod struct {
	// Image of the tool to use in place of pingcap/dumpling:<version> for a logical backup,
	// pingcap/tidb-lightning:<version> for a logical restore, or pingcap/br:<version> for
	// physical ones, with the version of the TiDBGroup.
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^[a-zA-Z0-9][a-zA-Z0-9._:/@-]*$`
	// +optional
	Image string `json:"image,omitempty"`
	// ServiceAccountName of the pods, which get no token of Kubernetes: a cloud may give its
	// pods an identity, by which they reach a storage without Secret. Default: that of the
	// namespace.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	// +optional
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
	// Resources of the tool's container.
	// +optional
	Resources Resources `json:"resources,omitempty"`
	// NodeSelector that a node must match to run the pod.
	// +kubebuilder:validation:MaxProperties=32
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// Tolerations of the pod.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	Tolerations []Toleration `json:"tolerations,omitempty"`
}

// PhysicalRun says how BR works.
type PhysicalRun struct {
	// Concurrency is how many threads a store uses for a restore, or BR for a backup. Default:
	// BR's own.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=512
	// +optional
	Concurrency *int32 `json:"concurrency,omitempty"`
	// RateLimit is how many MiB each store may read or write in a second. Default: no limit.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	// +optional
	RateLimit *int32 `json:"rateLimit,omitempty"`
	// Checksum has BR compare the checksums of all tables at the end. Default: BR's own,
	// which is true in releases before v8.5 and differs since.
	// +optional
	Checksum *bool `json:"checksum,omitempty"`
}

// LogicalRun says how Dumpling and TiDB Lightning work.
type LogicalRun struct {
	// Threads is how many connections Dumpling reads by, or how many parts of files TiDB
	// Lightning writes at once (its region-concurrency). Default: the tool's own, which is 4 for
	// Dumpling, and the number of the node's processors for TiDB Lightning.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=256
	// +optional
	Threads *int32 `json:"threads,omitempty"`
}

// BackupTemplate is what a Backup and a BackupSchedule say of a backup.
//
// +kubebuilder:validation:XValidation:rule="(has(self.databases) ? 1 : 0) + (has(self.tables) ? 1 : 0) + (has(self.filters) ? 1 : 0) <= 1",message="databases, tables and filters exclude each other: name one of them, or none for everything"
// +kubebuilder:validation:XValidation:rule="!has(self.physical) || self.type == 'Physical'",message="physical goes with type: Physical"
// +kubebuilder:validation:XValidation:rule="!has(self.logical) || self.type != 'Physical'",message="logical goes with type: Logical"
// +kubebuilder:validation:XValidation:rule="self.type != 'Physical' || !has(self.storage.pvc)",message="type Physical needs storage.s3, gcs or azblob: every TiKV writes files itself, and a claim is mounted in none of them, whatever its access mode; use a bucket, or type: Logical"
// +kubebuilder:validation:XValidation:rule="self.type != 'Physical' || (!has(self.storage.s3) || has(self.storage.s3.secret)) && (!has(self.storage.gcs) || has(self.storage.gcs.secret))",message="type Physical needs a secret in storage: every TiKV writes files itself, and has not the identity of the run's pod"
// +kubebuilder:validation:XValidation:rule="self.type != 'Physical' || !has(self.storage.s3) || !has(self.storage.s3.caSecret)",message="type Physical cannot use storage.s3.caSecret: every TiKV writes files itself, and knows the authorities of its image alone; use an endpoint that they know, or type: Logical"
type BackupTemplate struct {
	// TiDBGroup of the namespace through which the database is read.
	TiDBGroup LocalReference `json:"tidbGroup"`
	// Type of the backup. Logical: SQL files, written by Dumpling from one snapshot.
	// Physical: TiKV's data, which every TiKV writes to a bucket itself, led by BR.
	// +kubebuilder:validation:Enum=Logical;Physical
	// +kubebuilder:default=Logical
	// +optional
	Type BackupType `json:"type,omitempty"`
	// Physical says how BR works.
	// +optional
	Physical *PhysicalRun `json:"physical,omitempty"`
	// Logical says how Dumpling works.
	// +optional
	Logical *LogicalRun `json:"logical,omitempty"`
	Login   `json:",inline"`
	// Storage that the files go to.
	Storage Storage `json:"storage"`
	// Databases to copy. Default: all but those of the system.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	// +kubebuilder:validation:items:Pattern=`^[-_$a-zA-Z0-9]+$`
	// +listType=set
	// +optional
	Databases []string `json:"databases,omitempty"`
	// Tables to copy, each as database.table.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=129
	// +kubebuilder:validation:items:Pattern=`^[-_$a-zA-Z0-9]+[.][-_$a-zA-Z0-9]+$`
	// +listType=set
	// +optional
	Tables []string `json:"tables,omitempty"`
	// Filters choose tables as TiDB's table filter has it, such as shop.* and !shop.log.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	// +listType=atomic
	// +optional
	Filters []string `json:"filters,omitempty"`
	RunPod  `json:",inline"`
	// CleanupPolicy says what becomes of the files when the Backup is deleted: Retain
	// leaves them, Delete deletes them. Default: Retain.
	// +kubebuilder:validation:Enum=Retain;Delete
	// +kubebuilder:default=Retain
	// +optional
	CleanupPolicy CleanupPolicy `json:"cleanupPolicy,omitempty"`
}

// BackupSpec is what is asked for. It is done once: what is copied, and where to, cannot be
// changed. How the run connects and what its pod looks like can be corrected until it has
// begun.
//
// +kubebuilder:validation:XValidation:rule="self.tidbGroup == oldSelf.tidbGroup && self.type == oldSelf.type && self.storage == oldSelf.storage && has(self.databases) == has(oldSelf.databases) && has(self.tables) == has(oldSelf.tables) && has(self.filters) == has(oldSelf.filters) && (!has(self.databases) || self.databases == oldSelf.databases) && (!has(self.tables) || self.tables == oldSelf.tables) && (!has(self.filters) || self.filters == oldSelf.filters)",message="a Backup is made once: what is copied, and where to, cannot be changed; create another Backup instead"
type BackupSpec struct {
	BackupTemplate `json:",inline"`
}

// RunStatus is what the statuses of a Backup and of a Restore have in common.
type RunStatus struct {
	// ObservedGeneration is the generation that this status was computed for.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// OperatorVersion is the version of the operator that wrote this status. Not updated
	// alone, except once after an operator upgrade.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	OperatorVersion string `json:"operatorVersion,omitempty"`
	// Conditions, by type. docs/conditions.md explains each. Ready is: it is complete.
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
	// State of the run. One that is Complete or Failed is not run again; only a LogBackup
	// is Paused or Stopped.
	// +kubebuilder:validation:Enum=Waiting;Running;Complete;Failed;Paused;Stopped
	// +optional
	State RunState `json:"state,omitempty"`
	// Attempts is how many Jobs have been made for it. One that could not begin is
	// tried again.
	// +optional
	Attempts int32 `json:"attempts,omitempty"`
	// Location of the files, as a URL.
	// +optional
	Location string `json:"location,omitempty"`
	// Size of the files in words, such as 12 MB. For kubectl get.
	// +optional
	Size string `json:"size,omitempty"`
	// Bytes of the files.
	// +optional
	Bytes int64 `json:"bytes,omitempty"`
	// TSO is the time stamp of TiDB that the copy shows the database at.
	// +kubebuilder:validation:MaxLength=20
	// +optional
	TSO string `json:"tso,omitempty"`
	// Progress of the run that goes on, as its tool last reported it, such as 45%: Dumpling and BR
	// report it every two minutes, and BR for each of its steps; TiDB Lightning every ten seconds.
	// +kubebuilder:validation:MaxLength=8
	// +optional
	Progress string `json:"progress,omitempty"`
	// EstimatedCompletionTime is when that run would end if it went on as fast.
	// +optional
	EstimatedCompletionTime *metav1.Time `json:"estimatedCompletionTime,omitempty"`
	// StartTime is when its last Job was made.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// CompletionTime is when that Job ended.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
}

// SetOperatorVersion says which version of the operator writes the status.
func (s *RunStatus) SetOperatorVersion(version string) { s.OperatorVersion = version }

// HasEnded reports whether the run is over.
func (s *RunStatus) HasEnded() bool { return s.State == RunComplete || s.State == RunFailed }

// BackupStatus is what the backup operator has found.
//
// It has one writer, which writes it as a whole.
// +structType=atomic
type BackupStatus struct {
	RunStatus `json:",inline"`
}

// Backup is one copy of a database.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=tgb,categories={tidb-groups,tidb-all}
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
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 48 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must be at most 48 characters of a-z, 0-9 and -, and begin with a letter: Jobs and folders are named after it"
type Backup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what is asked for.
	Spec BackupSpec `json:"spec"`
	// Status is what the backup operator has found.
	// +optional
	Status BackupStatus `json:"status,omitempty"`
}

// BackupList is a list of Backups.
//
// +kubebuilder:object:root=true
type BackupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Backup `json:"items"`
}

// RunKind implements Run.
func (b *Backup) RunKind() string { return KindBackup }

// GetRunStatus implements Run.
func (b *Backup) GetRunStatus() *RunStatus { return &b.Status.RunStatus }

// GetTiDBGroup implements Run.
func (b *Backup) GetTiDBGroup() string { return b.Spec.TiDBGroup.Name }

// GetLogin implements Run.
func (b *Backup) GetLogin() Login { return b.Spec.Login }

// GetRunPod implements Run.
func (b *Backup) GetRunPod() RunPod { return b.Spec.RunPod }

// GetLogical implements Run.
func (b *Backup) GetLogical() LogicalRun { return valueOf(b.Spec.Logical) }

// GetPhysical implements Run.
func (b *Backup) GetPhysical() PhysicalRun { return valueOf(b.Spec.Physical) }

// valueOf is what a pointer points to, empty for nil.
func valueOf[T PhysicalRun | LogicalRun](p *T) T {
	if p == nil {
		return *new(T)
	}
	return *p
}
