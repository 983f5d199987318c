package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// TidbClusterSpec is a whole TiDB cluster in one object: each entry becomes one
// group object, and nothing else.
//
// +kubebuilder:validation:XValidation:rule="has(self.clusterDomain) ? (has(oldSelf.clusterDomain) && self.clusterDomain == oldSelf.clusterDomain) : !has(oldSelf.clusterDomain)",message="clusterDomain is part of the addresses by which PD knows the members: it cannot be set, changed or removed later; leave it as it was"
// +kubebuilder:validation:XValidation:rule="has(self.tls) == has(oldSelf.tls) || has(self.suspended) && self.suspended || has(oldSelf.suspended) && oldSelf.suspended",message="spec.tls can be added or removed only while no pod runs, for the members of PD speak either http or https to each other: set spec.suspended to true in the same patch (docs/tasks/tls.md)"
// +kubebuilder:validation:XValidation:rule="!has(self.bootstrapFrom) || has(oldSelf.bootstrapFrom)",message="bootstrapFrom takes effect only when the cluster is made: it may be removed later, not added; restore into a living cluster with a Restore (docs/tasks/restore.md)"
// +kubebuilder:validation:XValidation:rule="!has(self.bootstrapFrom) || has(self.tidb) && size(self.tidb) > 0",message="bootstrapFrom needs an entry of spec.tidb, through which the data are written: add one, or remove bootstrapFrom"
type TidbClusterSpec struct {
	// Version of every component that does not name its own.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`
	// +kubebuilder:validation:XValidation:rule="!self.matches('^V?[0-9]+([.]|$)')",messageExpression="'versions of TiDB begin with v: write v' + self.replace('V', '')"
	// +kubebuilder:validation:XValidation:rule="!(self.lowerAscii() in ['latest', 'nightly', 'stable', 'master', 'main'])",messageExpression="self + ' is another release every other day: name one, such as v8.5.7'"
	Version string `json:"version"`
	// PD becomes PDGroup <name>-pd.
	PD             PDEntry `json:"pd"`
	TiKVEntries    `json:",inline"`
	TiDBEntries    `json:",inline"`
	TiFlashEntries `json:",inline"`
	TiProxyEntries `json:",inline"`
	TiCDCEntries   `json:",inline"`
	// Paused is passed to every group.
	// +optional
	Paused bool `json:"paused,omitempty"`
	// Suspended is passed to every group.
	// +optional
	Suspended bool `json:"suspended,omitempty"`
	// RestartedAt is passed to every group. If a group has its own, the later of the two
	// wins; compared as strings, so use times in RFC 3339 and UTC.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	RestartedAt string `json:"restartedAt,omitempty"`
	// Disruption is passed to every group that has none of its own.
	// +optional
	Disruption *Disruption `json:"disruption,omitempty"`
	// ClusterDomain of Kubernetes, such as cluster.local, is passed to every group that
	// has none of its own. It cannot be set, changed or removed later. Default: none.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="clusterDomain must be a DNS name such as cluster.local, without a dot at its end"
	// +optional
	ClusterDomain string `json:"clusterDomain,omitempty"`
	// TLS is passed to every group that has none of its own. An empty object switches it
	// on: every connection between them is encrypted, and both ends show a certificate,
	// from Secrets that have to exist, or that issuer or selfSigned have made:
	// docs/tasks/tls.md. It is switched on or off while the cluster is suspended. Default: none.
	// +optional
	TLS *ClusterTLS `json:"tls,omitempty"`
	// PreferIPv6 is passed to every group.
	// +optional
	PreferIPv6 bool `json:"preferIPv6,omitempty"`
	// PeerService is passed to every group that has none of its own.
	// +optional
	PeerService *IPFamilies `json:"peerService,omitempty"`
	// BootstrapFrom is the backup whose data the cluster begins with. It becomes the Restore
	// <name>-bootstrap. Until that is complete the cluster is not Ready, and its Services
	// let no client in; afterwards nothing of it is looked at any more. A cluster that has
	// data is never restored into. It cannot be added later. Default: none.
	// +optional
	BootstrapFrom *BootstrapFrom `json:"bootstrapFrom,omitempty"`
}

// BootstrapFrom is the backup that a cluster begins with: exactly one of backup, logBackup and
// storage. How the run connects and what its pod looks like can be corrected until it has
// begun.
//
// +kubebuilder:validation:XValidation:rule="has(self.backup) == has(oldSelf.backup) && (!has(self.backup) || self.backup == oldSelf.backup) && has(self.logBackup) == has(oldSelf.logBackup) && (!has(self.logBackup) || self.logBackup == oldSelf.logBackup) && has(self.storage) == has(oldSelf.storage) && (!has(self.storage) || self.storage == oldSelf.storage) && has(self.folder) == has(oldSelf.folder) && (!has(self.folder) || self.folder == oldSelf.folder) && has(self.logFolder) == has(oldSelf.logFolder) && (!has(self.logFolder) || self.logFolder == oldSelf.logFolder) && has(self.type) == has(oldSelf.type) && (!has(self.type) || self.type == oldSelf.type) && has(self.pointInTime) == has(oldSelf.pointInTime) && (!has(self.pointInTime) || self.pointInTime == oldSelf.pointInTime)",message="bootstrapFrom is done once: what the cluster begins with cannot be changed; delete the cluster and its claims and recreate it, or remove bootstrapFrom"
// +kubebuilder:validation:XValidation:rule="!has(self.type) || has(self.storage)",message="type goes with storage: that of a Backup is known"
// +kubebuilder:validation:XValidation:rule="!has(self.type) || self.type != 'Physical' || !has(self.storage) || !has(self.storage.pvc) && (!has(self.storage.s3) || has(self.storage.s3.secret) && !has(self.storage.s3.caSecret)) && (!has(self.storage.gcs) || has(self.storage.gcs.secret))",message="type Physical needs storage.s3, gcs or azblob with a secret, and without caSecret: every TiKV reads the files itself"
// +kubebuilder:validation:XValidation:rule="!has(self.physical) || has(self.backup) || has(self.type) && self.type == 'Physical'",message="physical goes with type: Physical"
// +kubebuilder:validation:XValidation:rule="!has(self.logical) || !has(self.type) || self.type != 'Physical'",message="logical goes with type: Logical"
// +kubebuilder:validation:XValidation:rule="!has(self.pointInTime) || has(self.logBackup) || has(self.logFolder)",message="pointInTime goes with logBackup, or with logFolder: without a log there is no moment but that of the backup"
// +kubebuilder:validation:XValidation:rule="!has(self.logFolder) || has(self.type) && self.type == 'Physical'",message="logFolder goes with type: Physical"
// +kubebuilder:validation:XValidation:rule="!has(self.logBackup) && !has(self.logFolder) || !has(self.physical) && !has(self.logical)",message="physical and logical do not go with a log: BR restores it as it does by default"
type BootstrapFrom struct {
	RestoreSource `json:",inline"`
	// PointInTime is the moment that a log is restored to, to the millisecond. Default: the
	// last one that the log has.
	// +optional
	PointInTime *Moment `json:"pointInTime,omitempty"`
	// Type of the backup in storage, as its Backup had it. Default: Logical.
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
	RunPod  `json:",inline"`
}

// TidbClusterStatus mirrors the groups.
//
// It has one writer, which writes it as a whole.
// +structType=atomic
type TidbClusterStatus struct {
	// ObservedGeneration is the generation that this status was computed for.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// OperatorVersion is the version of the operator that wrote this status. Not updated
	// alone, except once after an operator upgrade.
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
	// spec asks for, in this order; LeadersEvicted if all is well but for a member that
	// leads nothing on request, CertificateExpiring but for a certificate that ends soon,
	// Recovering but for a store that was away and catches up; empty if there is nothing to report. For kubectl get.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Message that goes with Reason, of at most 80 characters; the condition has all
	// of it. For kubectl get -o wide.
	// +optional
	Message string `json:"message,omitempty"`
	// Updated is how many Instances of all groups are at the revision that the spec asks for, of
	// those that exist or are asked for: 2/3. For kubectl get.
	// +optional
	Updated string `json:"updated,omitempty"`
	// Version that the groups run, as they report it; several, separated by commas,
	// while or because they differ. Of those whose releases are their own, such as
	// TiProxy, it says nothing.
	// +optional
	Version string `json:"version,omitempty"`
	// ClusterID of PD.
	// +optional
	ClusterID string `json:"clusterID,omitempty"`
	// Endpoint that MySQL clients connect to, host:port: that of the first TiProxyGroup, or
	// of the first TiDBGroup if there is none.
	// +optional
	Endpoint string `json:"endpoint,omitempty"`
	// RestoredAt is when the data of spec.bootstrapFrom were there. It never goes.
	// +optional
	RestoredAt *metav1.Time `json:"restoredAt,omitempty"`
	// Groups, one per entry of the spec, in the order pd, tikv, tidb and so on; and
	// behind them those that the spec no longer names and that are still there.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=96
	// +optional
	Groups []GroupSummary `json:"groups,omitempty"`
}

// SetOperatorVersion says which version of the operator writes the status.
func (s *TidbClusterStatus) SetOperatorVersion(version string) { s.OperatorVersion = version }

// DropWords empties what of the status only people read.
func (s *TidbClusterStatus) DropWords() {
	s.Reason, s.Message, s.Updated, s.Version, s.ClusterID, s.Endpoint, s.Groups = "", "", "", "", "", "", nil
	s.Conditions = withoutWords(s.Conditions)
}

// MirrorsWords says that the words of the status are those of the groups.
func (s *TidbClusterStatus) MirrorsWords() {}

// GroupSummary mirrors one group.
type GroupSummary struct {
	// Name of the group object.
	Name string `json:"name"`
	// Kind of the group object.
	Kind string `json:"kind"`
	// Ready is the status of the group's Ready condition; Unknown while the
	// group has no current one.
	Ready metav1.ConditionStatus `json:"ready"`
	// Replicas asked for.
	Replicas int32 `json:"replicas"`
	// ReadyReplicas as the group reports them.
	ReadyReplicas int32 `json:"readyReplicas"`
	// Reason of the group's Ready condition; of a group that the spec does not name
	// any more, EntryRemoved while it is kept and Deleting while it goes.
	// +optional
	Reason string `json:"reason,omitempty"`
}

// TidbCluster is a whole TiDB cluster in one object.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=tgc,categories={tidb,tidb-groups,tidb-all}
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Up-to-date",type=string,JSONPath=`.status.conditions[?(@.type=="UpToDate")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.reason`
// +kubebuilder:printcolumn:name="Updated",type=string,JSONPath=`.status.updated`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.version`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Endpoint",type=string,priority=1,JSONPath=`.status.endpoint`
// +kubebuilder:printcolumn:name="Cluster ID",type=string,priority=1,JSONPath=`.status.clusterID`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.message`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$') && size(self.metadata.name) <= 32",message="metadata.name must be at most 32 characters of a-z, 0-9 and -, and begin with a letter: every object is named after it"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.tikv) || self.spec.tikv.all(g, size(self.metadata.name) + size(g.name) <= 34)",message="metadata.name and spec.tikv[].name together may have at most 34 characters, because the group's name has at most 40"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.tidb) || self.spec.tidb.all(g, size(self.metadata.name) + size(g.name) <= 34)",message="metadata.name and spec.tidb[].name together may have at most 34 characters, because the group's name has at most 40"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.tiflash) || self.spec.tiflash.all(g, size(self.metadata.name) + size(g.name) <= 31)",message="metadata.name and spec.tiflash[].name together may have at most 31 characters, because the group's name has at most 40"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.tiproxy) || self.spec.tiproxy.all(g, size(self.metadata.name) + size(g.name) <= 31)",message="metadata.name and spec.tiproxy[].name together may have at most 31 characters, because the group's name has at most 40"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.ticdc) || self.spec.ticdc.all(g, size(self.metadata.name) + size(g.name) <= 33)",message="metadata.name and spec.ticdc[].name together may have at most 33 characters, because the group's name has at most 40"
// +kubebuilder:validation:XValidation:rule="self.spec.pd.replicas == oldSelf.spec.pd.replicas || oldSelf.spec.pd.replicas == 0 || (has(self.status) && has(self.status.clusterID))",message="spec.pd.replicas cannot change until PD has bootstrapped: wait for status.clusterID, or delete the cluster and recreate it",fieldPath=".spec.pd.replicas"
type TidbCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what is asked for.
	Spec TidbClusterSpec `json:"spec"`
	// Status mirrors the groups.
	// +optional
	Status TidbClusterStatus `json:"status,omitempty"`
}

// TidbClusterList is a list of TidbClusters.
//
// +kubebuilder:object:root=true
type TidbClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []TidbCluster `json:"items"`
}
