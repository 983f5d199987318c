package v1alpha1

// Labels and annotations that the operators write. Users' own labels may not
// begin with LabelPrefix.
const (
	// LabelPrefix is the prefix of every label and annotation of the suite.
	LabelPrefix = "groups.tidb.dev/"

	// LabelManagedBy is Kubernetes' recommended label; its value on every
	// object of the suite is ManagedBy. Caches select on it.
	LabelManagedBy = "app.kubernetes.io/managed-by"
	// LabelName is Kubernetes' recommended label; its value is "tidb".
	LabelName = "app.kubernetes.io/name"
	// LabelComponent is Kubernetes' recommended label: pd, tikv and so on.
	LabelComponent = "app.kubernetes.io/component"
	// LabelCluster is Kubernetes' recommended instance label; its value is the
	// name of the PDGroup, because sharing a PDGroup is what makes a cluster.
	LabelCluster = "app.kubernetes.io/instance"
	// LabelGroup is the name of the group object that an object belongs to.
	LabelGroup = LabelPrefix + "group"
	// LabelInstance is the name of the Instance that a pod or claim belongs to.
	LabelInstance = LabelPrefix + "instance"
	// LabelRevision is the revision that a pod runs.
	LabelRevision = LabelPrefix + "revision"
	// LabelVolume is the name of the volume that a claim is for.
	LabelVolume = LabelPrefix + "volume"
	// LabelSQL is, on a Job and its pod, the name of the entry of spec.sql that it runs.
	LabelSQL = LabelPrefix + "sql"
	// LabelClosed is what the Service of a group selects besides while spec.service.closed
	// is set. No pod has it.
	LabelClosed = LabelPrefix + "closed"
	// LabelUmbrella is, on a group, the name of the TidbCluster that made it.
	LabelUmbrella = LabelPrefix + "tidbcluster"

	// LabelShard is set by a user on a namespace: the name of the set of operators, by
	// its --shard, that acts there.
	LabelShard = LabelPrefix + "shard"

	// LabelRun is, on a Job of a Backup, a LogBackup or a Restore and on its pod, the UID of that object.
	LabelRun = LabelPrefix + "run"
	// AnnotationRun is, on such a Job and its pod, the kind and the name of that object.
	AnnotationRun = LabelPrefix + "run-of"
	// AnnotationRunGeneration is, on a Job of a LogBackup, the generation of that object that
	// the Job was made for.
	AnnotationRunGeneration = LabelPrefix + "run-generation"
	// LabelPhysicalOf is, on a Job of a physical Backup or Restore and on its pod, the PDGroup:
	// of the Jobs of one, one runs at a time.
	LabelPhysicalOf = LabelPrefix + "physical-of"
	// LabelSchedule is, on a Backup, the name of the BackupSchedule that made it.
	LabelSchedule = LabelPrefix + "backup-schedule"
	// AnnotationScheduleUID is, on a Backup, the UID of the BackupSchedule that made it:
	// one that is created again under the same name deletes no Backup of the first.
	AnnotationScheduleUID = LabelPrefix + "backup-schedule-uid"

	// AnnotationTemplate holds, on a pod, the rendered template that it was
	// made from, so that a later template can be compared with it.
	AnnotationTemplate = LabelPrefix + "template"
	// AnnotationRendering holds, on a Service, how it was rendered and a hash of
	// what from: it stays as it is until that part of the spec changes.
	AnnotationRendering = LabelPrefix + "rendering"
	// AnnotationApplied holds the hash of what an operator last applied, so
	// that a write that would change nothing is not sent. On a claim it is what the claim
	// was made to ask for, whatever a webhook has made of that.
	AnnotationApplied = LabelPrefix + "applied"
	// AnnotationRetired marks a claim whose member has left its cluster for
	// good. Such a claim is never mounted again; its slot is skipped while it
	// exists. The value is the reason.
	AnnotationRetired = LabelPrefix + "retired"
	// LabelRetired is "true" on a claim with AnnotationRetired, so that kubectl get pvc
	// -l lists such claims, or leaves them out. Nothing is decided by it.
	LabelRetired = AnnotationRetired
	// AnnotationExpires is, on a retired claim, when it is deleted (RFC 3339): its
	// group's claim retention said so when its member left. A user who removes it keeps
	// the claim.
	AnnotationExpires = LabelPrefix + "expires"

	// AnnotationExpiresClaim is, beside AnnotationExpires, the UID of the claim that was
	// retired and for how long it was to be kept, with a space between. A claim of
	// another UID was restored since, with the annotations of the first: it is kept for
	// as long, from when it was created.
	AnnotationExpiresClaim = LabelPrefix + "expires-claim"
	// AnnotationMadeBy is set by the instance operator on a claim as it makes it: the
	// UID of the Instance. A claim without it is deleted only if its Instance's status
	// says that it was started with it, and never expires.
	AnnotationMadeBy = LabelPrefix + "made-by"
	// AnnotationAdopt is set by a user on a claim without our labels, such as one
	// that was restored from a snapshot: the name of the Instance that is to use it.
	// Such a claim is never deleted by an operator.
	AnnotationAdopt = LabelPrefix + "adopt"

	// AnnotationRestartedAt carries spec.restartedAt on a pod's template; a
	// change of it restarts the pod.
	AnnotationRestartedAt = LabelPrefix + "restarted-at"
	// AnnotationRotatedAt is, on the Secret of a cluster's own CA, the rotatedAt that it was
	// made for.
	AnnotationRotatedAt = LabelPrefix + "rotated-at"
	// AnnotationTrust carries the digest of the authorities that a pod starts with, where
	// they are the cluster's own; a change restarts the pod.
	AnnotationTrust = LabelPrefix + "trust"
	// AnnotationRestart is set by a user on an Instance to have its pod
	// restarted once, as safely as in a roll. Any new text will do; a time tells
	// most.
	AnnotationRestart = LabelPrefix + "restart"
	// AnnotationRestarted is the AnnotationRestart that a group's operator has
	// answered last, on the Instance.
	AnnotationRestarted = LabelPrefix + "restarted"
	// AnnotationRemoveFirst is set by a user on an Instance that the next
	// scale-in is to remove before others. The value does not count.
	AnnotationRemoveFirst = LabelPrefix + "remove-first"
	// AnnotationReplace is set by a user on an Instance whose member is to be
	// replaced: a new one comes in another slot, and this one leaves for good when that
	// is Ready. The value does not count.
	AnnotationReplace = LabelPrefix + "replace"
	// AnnotationRebalance is set by a group's operator on the Instance that
	// spec.rebalance has added, until it is known whether one may leave in exchange. The
	// value is that field's.
	AnnotationRebalance = LabelPrefix + "rebalance"
	// AnnotationEvictLeaders is set by a user on an Instance of TiKV or PD whose
	// member must have no leaders, and goes on running, for as long as it stands. Any
	// value will do, or none.
	AnnotationEvictLeaders = LabelPrefix + "evict-leaders"
	// AnnotationLeadersEvicted is set by a group's operator on an Instance whose
	// member has come to lead nothing, as AnnotationEvictLeaders asks: its value, or
	// "true" if that is empty. It stays until the request is gone and the member may
	// lead again.
	AnnotationLeadersEvicted = LabelPrefix + "leaders-evicted"
	// AnnotationStopAnyway is set by a user on an Instance of TiKV whose restart is
	// held back because regions may lose their majority by it, or other stores do not
	// work: the UID of the pod that may be stopped all the same. It does not count for
	// another pod, and so for one restart only.
	AnnotationStopAnyway = LabelPrefix + "stop-anyway"
	// AnnotationDisruption is set by a group's operator on an Instance before it
	// prepares the database for the member to stop, or keeps leaders off it because a
	// user asks, and removed when it has taken that back. The value is the verb.
	AnnotationDisruption = LabelPrefix + "disruption"
	// AnnotationSurge is set by a group's operator on the Instances beyond
	// spec.replicas that let others be restarted without being missed, until the
	// last of those is back.
	AnnotationSurge = LabelPrefix + "surge"
	// AnnotationFailedOver is set by a TiDBGroup's operator on the Instances that
	// spec.failover has another server stand in for, until they have served again for
	// spec.failover.after.
	AnnotationFailedOver = LabelPrefix + "failed-over"
	// AnnotationRecoverQuorum is set by a user on a PDGroup whose PD has lost the
	// data of a majority for good: <Instance>/<cluster ID> names the member that PD
	// is rebuilt from and, so that it is never given by mistake, the cluster. Each
	// value is obeyed once; status.recovery says how far it is.
	AnnotationRecoverQuorum = LabelPrefix + "recover-quorum"
	// AnnotationAllowRemoval is set by a user on a TidbCluster whose spec does not
	// name groups any more that hold data: their names, with a comma between, are the
	// consent to delete them all the same. It counts for as long as it stands.
	AnnotationAllowRemoval = LabelPrefix + "allow-removal"
	// AnnotationEntryRemoved is set by the tidbcluster operator on a group of stores
	// that its TidbCluster, the value, does not name any more and that is kept for its
	// data, and removed when it does again. The group's operator then reports how many
	// regions it has (ConditionHoldsRegions).
	AnnotationEntryRemoved = LabelPrefix + "entry-removed"
	// AnnotationStart is, on the pod of a member that bootstraps PD's cluster, the argument
	// that it starts with. It changes to one that joins, without a restart, as soon as
	// there is a cluster.
	AnnotationStart = LabelPrefix + "start"
	// AnnotationAppliedConfig is set by a group's operator on an Instance before another
	// configuration is sent to its running member, and removed when the member runs
	// with it: the UID of the pod, and the revisions whose configuration may have been
	// sent. It does not count for another pod.
	AnnotationAppliedConfig = LabelPrefix + "applied-config"
	// AnnotationMadeFrom is, on a pod that was brought to another revision while it
	// ran, the revision that it was made from: its files are still those.
	AnnotationMadeFrom = LabelPrefix + "made-from"
	// AnnotationHolder is, on the Lease of a PDGroup's disruptions, the UID of the
	// Instance that holds it.
	AnnotationHolder = LabelPrefix + "holder"
	// AnnotationLeaders is, on the Lease, how many leaders the holder's store had
	// before they were moved away.
	AnnotationLeaders = LabelPrefix + "leaders"
	// AnnotationRecreating is, on the Lease, the group that creates the Instance of its
	// holder again, which is being deleted and is to come back under the same name.
	// Until it does no other member may take the Lease.
	AnnotationRecreating = LabelPrefix + "recreating"
	// AnnotationRestartBatch is, on the Lease, the batch that is restarted together with
	// the holder: the holder's UID, and for each member its name, = and how many leaders
	// its store had, all with a space between.
	AnnotationRestartBatch = LabelPrefix + "restart-batch"
	// AnnotationRestartBatchBlocked is, on the Lease, why the holder is restarted alone
	// although its group asks for batches: the holder's UID, a space, and the reason.
	AnnotationRestartBatchBlocked = LabelPrefix + "restart-batch-blocked"

	// FinalizerInstance is on every Instance, which its group's operator makes with it, until
	// the instance operator sees that the pod is gone and has applied the claim retention.
	FinalizerInstance = LabelPrefix + "instance"
	// FinalizerMember is held by a group's operator on an Instance whose member
	// has to leave the database before its pod may stop.
	FinalizerMember = LabelPrefix + "member"

	// FinalizerBackup is held by the backup operator on a Backup whose files are to be
	// deleted with it, and on every LogBackup, whose task is stopped before it goes.
	FinalizerBackup = LabelPrefix + "backup"

	// ManagedBy is the value of LabelManagedBy.
	ManagedBy = "tidb-groups"
)
