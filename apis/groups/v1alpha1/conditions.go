package v1alpha1

import (
	"slices"
	"strings"
	"sync"
)

// Condition types. The core types stand on every kind; the others on the kinds
// that ConditionTable names.
const (
	// ConditionReady is set by the operator of the object's kind, last in every
	// reconcile and from the other conditions alone: it serves now and may be
	// depended on. It stays True through a healthy rolling restart.
	ConditionReady = "Ready"
	// ConditionUpToDate is set by the operator of the object's kind in every
	// reconcile: everything below the object matches its spec.
	ConditionUpToDate = "UpToDate"
	// ConditionReconciling is set by the operator of the object's kind while it
	// works towards the spec, and removed when it has arrived or stalled.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is set by the operator of the object's kind when a user
	// must act before it can go on, and removed when it can.
	ConditionStalled = "Stalled"
	// ConditionPaused is set by the operator of the object's kind while
	// spec.paused keeps it from acting, and removed afterwards.
	ConditionPaused = "Paused"
	// ConditionDependenciesReady is set by the operator of a waiting group in
	// every reconcile: the groups that it waits for are Ready.
	ConditionDependenciesReady = "DependenciesReady"

	// ConditionBootstrapped is set by the pdgroup operator when PD has first
	// answered with a cluster ID. It never goes back.
	ConditionBootstrapped = "Bootstrapped"
	// ConditionQuorumHealthy is set by the pdgroup operator in every reconcile:
	// PD has a leader and a majority of its members is healthy.
	ConditionQuorumHealthy = "QuorumHealthy"
	// ConditionStoresHealthy is set by the operators of groups of stores in every
	// reconcile: every store of the group is Up, and no region of TiKV has
	// lost its majority with stores of others.
	ConditionStoresHealthy = "StoresHealthy"
	// ConditionHoldsRegions is set by the operators of groups of stores while
	// the group's entry is gone from its TidbCluster (AnnotationEntryRemoved) and PD
	// counts regions on its stores.
	ConditionHoldsRegions = "HoldsRegions"

	// ConditionPodReady is set by the instance operator in every reconcile: the
	// pod exists, runs and passes its readiness probe.
	ConditionPodReady = "PodReady"
	// ConditionVolumesReady is set by the instance operator in every reconcile:
	// every claim exists, is the one that the pod was started with, and does
	// not stand in the pod's way.
	ConditionVolumesReady = "VolumesReady"
	// ConditionJoined is set by the group's operator: the database lists the
	// member.
	ConditionJoined = "Joined"
	// ConditionHealthy is set by the group's operator: the database calls the
	// member healthy.
	ConditionHealthy = "Healthy"
	// ConditionDrained is set by the group's operator when the member has left
	// the database: the permission to stop the pod for good.
	ConditionDrained = "Drained"
)

// Reasons, the closed set. Each is CamelCase and stands in ConditionTable.
const (
	ReasonReady               = "Ready"
	ReasonNotReady            = "NotReady"
	ReasonUpToDate            = "UpToDate"
	ReasonProgressing         = "Progressing"
	ReasonCreating            = "Creating"
	ReasonRestartPending      = "RestartPending"
	ReasonNewRendering        = "NewRendering"
	ReasonVolumeChangePending = "VolumeChangePending"
	// ReasonRestarting: the holder of the disruption Lease is being restarted.
	ReasonRestarting = "Restarting"
	// ReasonPreparing: the database is being prepared for a member to stop.
	ReasonPreparing = "Preparing"
	// ReasonRecovering: a restarted member gets back what was moved away from it, or a store that
	// was away catches up, and no drain evicts another one.
	ReasonRecovering = "Recovering"
	// ReasonDraining: a member is leaving the database for good.
	ReasonDraining = "Draining"
	// ReasonWaitingForLease: another member of the cluster is being disrupted.
	ReasonWaitingForLease = "WaitingForLease"
	// ReasonUnsafe: stopping a member now would cost a majority.
	ReasonUnsafe = "Unsafe"
	// ReasonScaleInRefused: the members that would remain are too few.
	ReasonScaleInRefused = "ScaleInRefused"
	// ReasonUpdateHeld: spec.disruption puts the next step off.
	ReasonUpdateHeld = "UpdateHeld"
	// ReasonAnnouncingUpgrade: TiDB is being notified that an upgrade begins, or that it
	// is over. Set by the tidbgroup operator.
	ReasonAnnouncingUpgrade = "AnnouncingUpgrade"
	// ReasonReplacing: a dead member is being replaced.
	ReasonReplacing = "Replacing"
	// ReasonReplacementPending: a member is to be replaced because a user asked for it
	// by an annotation, or by spec.volumeReplacement. Set by the operators of groups.
	ReasonReplacementPending = "ReplacementPending"
	// ReasonRebalancing: spec.rebalance has a store added so that another one may leave
	// a place that has more, or it cannot. Set by the operators of groups of stores.
	ReasonRebalancing = "Rebalancing"
	// ReasonConfigPending: a running member is to be given a changed configuration,
	// or has not reported yet whether it has it. Set by the operators of groups with
	// spec.configUpdate, and by the pdgroup operator for what PD stores.
	ReasonConfigPending = "ConfigPending"
	// ReasonConfigRefused: a running member does not take an item of a changed
	// configuration. Set by the operators of groups with spec.configUpdate, and by the
	// pdgroup operator for what PD stores.
	ReasonConfigRefused = "ConfigRefused"
	// ReasonEvictionTimedOut: leaders stayed longer than they may; the member is
	// stopped with them.
	ReasonEvictionTimedOut = "EvictionTimedOut"
	// ReasonEvictingLeaders: a member must have no leaders, or may lead again, because
	// an annotation on its Instance says so, and it is not so yet. Set by the tikvgroup
	// and pdgroup operators until that annotation has been answered, and from when it
	// is gone until PD lets the member lead again.
	ReasonEvictingLeaders = "EvictingLeaders"
	// ReasonLeadersEvicted: a member leads nothing because an annotation on its Instance
	// says so; UpToDate is True. Set by the tikvgroup, pdgroup and instance operators,
	// and passed on by the tidbcluster operator.
	ReasonLeadersEvicted      = "LeadersEvicted"
	ReasonWaitingForPDGroup   = "WaitingForPDGroup"
	ReasonWaitingForTiKVGroup = "WaitingForTiKVGroup"
	ReasonWaitingForInstances = "WaitingForInstances"
	ReasonWaitingForGroups    = "WaitingForGroups"
	ReasonDependenciesReady   = "DependenciesReady"
	ReasonInvalidSpec         = "InvalidSpec"
	// ReasonCertificateInvalid: a Secret with a certificate that spec.tls asks for is
	// missing, may not be read, or is not usable. Set by the operators of groups.
	ReasonCertificateInvalid = "CertificateInvalid"
	// ReasonWaitingForCertificate: a Secret with a certificate is being made by the issuer or
	// the CA that spec.tls of the PDGroup names. Set by the operators of groups.
	ReasonWaitingForCertificate = "WaitingForCertificate"
	// ReasonCertificateExpiring: a certificate that a group uses is in the last tenth of its
	// life, and it has not been renewed; UpToDate is True. Set by the operators of groups, and
	// passed on by the tidbcluster operator.
	ReasonCertificateExpiring = "CertificateExpiring"
	// ReasonTLSMismatch: a group has spec.tls and its PDGroup has not, or the reverse. Set
	// by the operators of groups.
	ReasonTLSMismatch       = "TLSMismatch"
	ReasonClusterIDMismatch = "ClusterIDMismatch"
	ReasonNameConflict      = "NameConflict"
	// ReasonEntryRemoved: a TidbCluster's spec does not name a group any more that
	// holds data, or may; it is kept. Set by the tidbcluster operator.
	ReasonEntryRemoved = "EntryRemoved"
	// ReasonRegionsLeft: the stores of a group have regions. Set by the operators of groups
	// of stores.
	ReasonRegionsLeft   = "RegionsLeft"
	ReasonPaused        = "Paused"
	ReasonSuspended     = "Suspended"
	ReasonDeleting      = "Deleting"
	ReasonRequestFailed = "RequestFailed"

	ReasonBootstrapped  = "Bootstrapped"
	ReasonBootstrapping = "Bootstrapping"
	// ReasonInitialMembersLost: Instances that may have bootstrapped PD's cluster are gone,
	// and the cluster's ID was not known yet. Set by the pdgroup operator.
	ReasonInitialMembersLost = "InitialMembersLost"
	// ReasonRecoveryRefused: a request to rebuild PD from one member is not obeyed,
	// and nothing has been touched for it. Set by the pdgroup operator.
	ReasonRecoveryRefused = "RecoveryRefused"
	// ReasonRecoveringQuorum: PD is being rebuilt from one member. Set by the pdgroup
	// operator from the first pod that is stopped for it to the last old Instance
	// that goes.
	ReasonRecoveringQuorum = "RecoveringQuorum"
	ReasonQuorumHealthy    = "QuorumHealthy"
	ReasonQuorumLost       = "QuorumLost"
	ReasonPDUnreachable    = "PDUnreachable"
	ReasonStoresHealthy    = "StoresHealthy"
	ReasonStoresUnhealthy  = "StoresUnhealthy"
	// ReasonRegionsUnavailable: regions have lost their majority with stores of other
	// groups, or of one that is gone. Set by the tikvgroup operator.
	ReasonRegionsUnavailable = "RegionsUnavailable"
	ReasonRegistering        = "Registering"
	ReasonNoInstances        = "NoInstances"
	ReasonStoreTombstone     = "StoreTombstone"
	ReasonStoreMismatch      = "StoreMismatch"
	ReasonMemberHealthy      = "MemberHealthy"
	ReasonMemberUnhealthy    = "MemberUnhealthy"
	ReasonMemberJoined       = "MemberJoined"
	ReasonMemberNotListed    = "MemberNotListed"
	ReasonMemberLeft         = "MemberLeft"
	ReasonNotDrained         = "NotDrained"
	ReasonPodReady           = "PodReady"
	ReasonPodMissing         = "PodMissing"
	ReasonPodPending         = "PodPending"
	ReasonPodUnschedulable   = "PodUnschedulable"
	ReasonPodNotReady        = "PodNotReady"
	// ReasonNodeUnreachable: a pod that was Ready is not since its node stopped
	// answering; it may run all the same. Set by the instance operator.
	ReasonNodeUnreachable      = "NodeUnreachable"
	ReasonPodFailed            = "PodFailed"
	ReasonPodRejected          = "PodRejected"
	ReasonPodTerminating       = "PodTerminating"
	ReasonPodOfAnotherOwner    = "PodOfAnotherOwner"
	ReasonImagePullFailed      = "ImagePullFailed"
	ReasonContainerCrashing    = "ContainerCrashing"
	ReasonContainerConfigError = "ContainerConfigError"
	ReasonVolumesReady         = "VolumesReady"
	ReasonClaimPending         = "ClaimPending"
	ReasonClaimLost            = "ClaimLost"
	ReasonClaimRetired         = "ClaimRetired"
	ReasonClaimRejected        = "ClaimRejected"
	ReasonClaimTerminating     = "ClaimTerminating"
	ReasonStorageClassMissing  = "StorageClassMissing"
	// ReasonQuotaExceeded: a ResourceQuota does not let a claim be made or grow.
	// Set by the instance operator.
	ReasonQuotaExceeded = "QuotaExceeded"
	// ReasonLimitRangeExceeded: a LimitRange does not let a claim be made or grow.
	// Set by the instance operator.
	ReasonLimitRangeExceeded = "LimitRangeExceeded"
	// ReasonVolumeAttributesClassMissing: a VolumeAttributesClass that the spec names does
	// not exist. Set by the instance operator.
	ReasonVolumeAttributesClassMissing = "VolumeAttributesClassMissing"
	// ReasonVolumeAttributesUnsupported: the API server drops a claim's
	// VolumeAttributesClass, which it does not know. Set by the instance operator.
	ReasonVolumeAttributesUnsupported = "VolumeAttributesUnsupported"
	// ReasonVolumeChanging: the storage driver grows or changes a volume, which
	// serves meanwhile. Set by the instance operator.
	ReasonVolumeChanging = "VolumeChanging"
	// ReasonVolumeChangeFailed: the storage driver or the kubelet reports that it
	// cannot grow or change a volume, which serves as it is. Set by the instance
	// operator.
	ReasonVolumeChangeFailed = "VolumeChangeFailed"
	ReasonMissingReference   = "MissingReference"
	ReasonGatesPending       = "GatesPending"

	// ReasonWaitingForTiDBGroup: the TiDBGroup that a run connects to is not Ready. This
	// and the following are set by the backup operator.
	ReasonWaitingForTiDBGroup = "WaitingForTiDBGroup"
	// ReasonWaitingForBackup: the Backup that a Restore reads is not complete.
	ReasonWaitingForBackup = "WaitingForBackup"
	// ReasonWaitingForRestore: the Restore of spec.bootstrapFrom is not complete, and no client
	// is let in before. Set by the tidbcluster operator.
	ReasonWaitingForRestore = "WaitingForRestore"
	// ReasonWaitingForLogBackup: the LogBackup that a Restore reads has not reached the
	// moment that is asked for, or is to be stopped before a Restore begins.
	ReasonWaitingForLogBackup = "WaitingForLogBackup"
	// ReasonWaitingForRun: another physical Backup or Restore of the cluster has not ended.
	ReasonWaitingForRun = "WaitingForRun"
	// ReasonJobRunning: the Job of a Backup or a Restore has not ended.
	ReasonJobRunning = "JobRunning"
	// ReasonRunFailed: the tool has failed, and its message does not say of what kind.
	ReasonRunFailed = "RunFailed"
	// ReasonLoginRefused: the database refuses the user or the password, or a right.
	ReasonLoginRefused = "LoginRefused"
	// ReasonDatabaseUnreachable: the database does not answer the pod of the run.
	ReasonDatabaseUnreachable = "DatabaseUnreachable"
	// ReasonDatabaseNotEmpty: a Restore is to write into a cluster with databases of users.
	ReasonDatabaseNotEmpty = "DatabaseNotEmpty"
	// ReasonStorageUnreachable: the server of the storage does not answer.
	ReasonStorageUnreachable = "StorageUnreachable"
	// ReasonStorageRefused: the storage refuses the credentials, or lets the run not read
	// or write.
	ReasonStorageRefused = "StorageRefused"
	// ReasonBucketMissing: the bucket does not exist.
	ReasonBucketMissing = "BucketMissing"
	// ReasonStorageFull: the storage has no space left.
	ReasonStorageFull = "StorageFull"
	// ReasonFolderTaken: the folder of a Backup has files that are not its own.
	ReasonFolderTaken = "FolderTaken"
	// ReasonBackupUnreadable: the files are not those of a complete backup.
	ReasonBackupUnreadable = "BackupUnreadable"
	// ReasonLogTaskTaken: the cluster has another task of log backup than the LogBackup's.
	ReasonLogTaskTaken = "LogTaskTaken"
	// ReasonLogTaskFailed: TiKV had paused the task of a LogBackup because of an error.
	ReasonLogTaskFailed = "LogTaskFailed"
	// ReasonLogGap: the log does not have all changes that are asked for.
	ReasonLogGap = "LogGap"
)

// Polarity says which status of a condition is the good one.
type Polarity string

const (
	// PositivePolarity conditions are good when True.
	PositivePolarity Polarity = "Positive"
	// NegativePolarity conditions are present only when True, and report
	// something unusual.
	NegativePolarity Polarity = "Negative"
)

// ConditionInfo describes one condition type.
// +kubebuilder:object:generate=false
type ConditionInfo struct {
	// Type of the condition.
	Type string
	// Kinds that carry it.
	Kinds []string
	// Polarity of the condition.
	Polarity Polarity
	// SetBy names the operator that writes it.
	SetBy string
	// Latch conditions never go back once True.
	Latch bool
	// Reasons that it may carry.
	Reasons []string
	// Meaning of True, in a sentence.
	Meaning string
}

// Has reports whether the condition may carry a reason.
func (i ConditionInfo) Has(reason string) bool { return slices.Contains(i.Reasons, reason) }

// AppliesTo reports whether the condition may stand on a kind.
func (i ConditionInfo) AppliesTo(kind string) bool { return slices.Contains(i.Kinds, kind) }

// ConditionTypes returns the types of all conditions in the order in which a status has them,
// which is the table's: the whole table takes long to make for every status.
func ConditionTypes() []string {
	return []string{
		ConditionReady, ConditionUpToDate, ConditionReconciling, ConditionStalled, ConditionPaused,
		ConditionDependenciesReady, ConditionBootstrapped, ConditionQuorumHealthy, ConditionStoresHealthy, ConditionHoldsRegions,
		ConditionPodReady, ConditionVolumesReady, ConditionJoined, ConditionHealthy, ConditionDrained,
	}
}

// ConditionTable returns what every condition means, who sets it and which
// reasons it may carry: the writers, the status checker of the tests and
// docs/conditions.md all read it.
func ConditionTable() []ConditionInfo { return slices.Clone(conditionTable()) }

// conditionTable makes the table once: with each status and each scrape of metrics, conditions
// are looked up in it. It is never changed.
var conditionTable = sync.OnceValue(func() []ConditionInfo {
	own := "the operator of the object's kind"
	// What keeps an object from its goal is the same list for Ready, UpToDate
	// and Reconciling: they repeat the most pressing one.
	blocked := []string{
		ReasonProgressing, ReasonCreating, ReasonRestartPending, ReasonNewRendering, ReasonVolumeChangePending,
		ReasonRestarting, ReasonPreparing, ReasonRecovering, ReasonDraining, ReasonWaitingForLease, ReasonUnsafe, ReasonScaleInRefused, ReasonUpdateHeld, ReasonAnnouncingUpgrade, ReasonReplacing, ReasonReplacementPending, ReasonRebalancing, ReasonEvictionTimedOut, ReasonEvictingLeaders, ReasonConfigPending, ReasonConfigRefused,
		ReasonWaitingForPDGroup, ReasonWaitingForTiKVGroup, ReasonWaitingForInstances, ReasonWaitingForGroups, ReasonWaitingForCertificate,
		ReasonInvalidSpec, ReasonCertificateInvalid, ReasonTLSMismatch, ReasonClusterIDMismatch, ReasonNameConflict, ReasonEntryRemoved, ReasonPaused, ReasonSuspended, ReasonDeleting, ReasonRequestFailed,
		ReasonBootstrapping, ReasonInitialMembersLost, ReasonQuorumLost, ReasonRecoveryRefused, ReasonRecoveringQuorum, ReasonPDUnreachable, ReasonStoresUnhealthy, ReasonRegionsUnavailable, ReasonRegistering, ReasonNoInstances, ReasonStoreTombstone, ReasonStoreMismatch,
		ReasonPodMissing, ReasonPodPending, ReasonPodUnschedulable, ReasonPodNotReady, ReasonNodeUnreachable, ReasonPodFailed, ReasonPodRejected, ReasonPodTerminating, ReasonPodOfAnotherOwner,
		ReasonImagePullFailed, ReasonContainerCrashing, ReasonContainerConfigError,
		ReasonClaimPending, ReasonClaimLost, ReasonClaimRetired, ReasonClaimRejected, ReasonClaimTerminating, ReasonStorageClassMissing, ReasonQuotaExceeded, ReasonLimitRangeExceeded,
		ReasonVolumeChanging, ReasonVolumeChangeFailed, ReasonVolumeAttributesClassMissing, ReasonVolumeAttributesUnsupported, ReasonMissingReference, ReasonGatesPending, ReasonNotReady,
		ReasonWaitingForTiDBGroup, ReasonWaitingForBackup, ReasonWaitingForRestore, ReasonWaitingForLogBackup, ReasonWaitingForRun, ReasonJobRunning, ReasonRunFailed, ReasonLoginRefused, ReasonDatabaseUnreachable, ReasonDatabaseNotEmpty,
		ReasonStorageUnreachable, ReasonStorageRefused, ReasonBucketMissing, ReasonStorageFull, ReasonFolderTaken, ReasonBackupUnreadable, ReasonLogTaskTaken, ReasonLogTaskFailed, ReasonLogGap,
	}
	stores := GroupKinds(func(c ComponentInfo) bool { return c.Stores })
	with := func(first ...string) []string { return append(first, blocked...) }
	return []ConditionInfo{
		{Type: ConditionReady, Kinds: Kinds(), Polarity: PositivePolarity, SetBy: own, Reasons: with(ReasonReady),
			Meaning: "It serves now and may be depended on. Stays True through a healthy rolling restart."},
		{Type: ConditionUpToDate, Kinds: Kinds(), Polarity: PositivePolarity, SetBy: own, Reasons: with(ReasonUpToDate, ReasonLeadersEvicted, ReasonCertificateExpiring),
			Meaning: "Everything below the object matches its spec."},
		{Type: ConditionReconciling, Kinds: Kinds(), Polarity: NegativePolarity, SetBy: own, Reasons: with(),
			Meaning: "The operator works towards the spec or waits for another object; the message names it."},
		{Type: ConditionStalled, Kinds: Kinds(), Polarity: NegativePolarity, SetBy: own, Reasons: with(),
			Meaning: "A user must act; the message says what to do. Nothing has been touched."},
		{Type: ConditionPaused, Kinds: Kinds(), Polarity: NegativePolarity, SetBy: own, Reasons: []string{ReasonPaused},
			Meaning: "spec.paused keeps the operator from acting."},
		{Type: ConditionDependenciesReady, Kinds: GroupKinds(func(c ComponentInfo) bool { return c.Kind != KindPDGroup }), Polarity: PositivePolarity,
			SetBy:   "the operator of the waiting group",
			Reasons: []string{ReasonDependenciesReady, ReasonWaitingForPDGroup, ReasonWaitingForTiKVGroup},
			Meaning: "The groups that this one waits for are Ready at their current generation."},
		{Type: ConditionBootstrapped, Kinds: []string{KindPDGroup}, Polarity: PositivePolarity, SetBy: "pdgroup", Latch: true,
			Reasons: []string{ReasonBootstrapped, ReasonBootstrapping},
			Meaning: "PD has a cluster ID, in status.clusterID. Never goes back."},
		{Type: ConditionQuorumHealthy, Kinds: []string{KindPDGroup}, Polarity: PositivePolarity, SetBy: "pdgroup",
			Reasons: []string{ReasonQuorumHealthy, ReasonQuorumLost, ReasonBootstrapping, ReasonPDUnreachable, ReasonClusterIDMismatch, ReasonSuspended},
			Meaning: "PD has a leader and a majority of its members is healthy."},
		{Type: ConditionStoresHealthy, Kinds: stores, Polarity: PositivePolarity, SetBy: strings.ToLower(strings.Join(stores, ", ")),
			Reasons: []string{ReasonStoresHealthy, ReasonStoresUnhealthy, ReasonRegionsUnavailable, ReasonRegistering, ReasonStoreMismatch, ReasonPDUnreachable, ReasonNoInstances, ReasonSuspended, ReasonWaitingForPDGroup, ReasonWaitingForTiKVGroup},
			Meaning: "Every store of the group is Up, and no region of TiKV has lost its majority, on stores of any group."},
		{Type: ConditionHoldsRegions, Kinds: stores, Polarity: NegativePolarity, SetBy: strings.ToLower(strings.Join(stores, ", ")),
			Reasons: []string{ReasonRegionsLeft},
			Meaning: "The group's entry is gone from its TidbCluster, and its stores have regions; the message says how many."},
		{Type: ConditionPodReady, Kinds: []string{KindInstance}, Polarity: PositivePolarity, SetBy: "instance",
			Reasons: []string{ReasonPodReady, ReasonPodMissing, ReasonPodPending, ReasonPodUnschedulable, ReasonPodNotReady, ReasonNodeUnreachable, ReasonPodFailed, ReasonPodRejected, ReasonPodTerminating, ReasonPodOfAnotherOwner, ReasonImagePullFailed, ReasonContainerCrashing, ReasonContainerConfigError, ReasonMissingReference, ReasonSuspended, ReasonInvalidSpec},
			Meaning: "The pod exists, runs and passes its readiness probe."},
		{Type: ConditionVolumesReady, Kinds: []string{KindInstance}, Polarity: PositivePolarity, SetBy: "instance",
			Reasons: []string{ReasonVolumesReady, ReasonClaimPending, ReasonClaimLost, ReasonClaimRetired, ReasonClaimRejected, ReasonClaimTerminating, ReasonStorageClassMissing, ReasonQuotaExceeded, ReasonLimitRangeExceeded, ReasonInvalidSpec},
			Meaning: "Every claim exists and is the one that the pod was started with."},
		{Type: ConditionJoined, Kinds: []string{KindInstance}, Polarity: PositivePolarity, SetBy: "the operator of the Instance's group",
			Reasons: []string{ReasonMemberJoined, ReasonMemberNotListed, ReasonStoreMismatch, ReasonPDUnreachable},
			Meaning: "The database lists the member."},
		{Type: ConditionHealthy, Kinds: []string{KindInstance}, Polarity: PositivePolarity, SetBy: "the operator of the Instance's group",
			Reasons: []string{ReasonMemberHealthy, ReasonMemberUnhealthy, ReasonMemberNotListed, ReasonPDUnreachable, ReasonRegistering, ReasonStoreTombstone, ReasonStoreMismatch},
			Meaning: "The database calls the member healthy."},
		{Type: ConditionDrained, Kinds: []string{KindInstance}, Polarity: PositivePolarity, SetBy: "the operator of the Instance's group",
			Reasons: []string{ReasonMemberLeft, ReasonNotDrained},
			Meaning: "The member has left the database: its pod may stop for good. False says why a member that is leaving, or whose Instance was deleted, must keep running."},
	}
})

// LookupCondition returns the row of a condition type, and whether there is one.
func LookupCondition(conditionType string) (ConditionInfo, bool) {
	for _, info := range conditionTable() {
		if info.Type == conditionType {
			return info, true
		}
	}
	return ConditionInfo{}, false
}
