package bench

// Names of the operations that have a budget.
const (
	startCluster  = "The start"
	scaleOutTiDB  = "TiDB is scaled out"
	scaleInTiDB   = "TiDB is scaled in"
	scaleOutTiKV  = "TiKV is scaled out"
	scaleInTiKV   = "TiKV is scaled in"
	restartTiDB   = "TiDB is restarted"
	restartTiKV   = "TiKV is restarted"
	configureTiDB = "TiDB is configured while it runs"
	deletePod     = "A pod is deleted"
	labelCluster  = "A label is set"
	deleteCluster = "The cluster is deleted"
)

// What several operations write for the same reason.
const (
	whyGroup   = "what the TidbCluster says, handed to the group"
	whyCluster = "UpToDate turns to False, and back; between them what the cluster waits for: once a second while only words change"
	whyTurned  = "UpToDate turned to False, and to True; one in the words of an earlier Event is counted there"
	whyDrain   = "kubectl drain may take as many as can be missed of the new number"
	whyRevised = "the revision"
	whyLate    = "a server that answers late counts as one that does not, and serves again: on a busy machine alone"
)

// BudgetedOperations are the operations that have one: the start of a cluster, and what is done to it then,
// in the order in which it is measured.
//
// The numbers are those of six runs on two processors with other work. Of statuses there
// may be one more for each member where something takes long, and one less where two came together.
func BudgetedOperations() []Operation {
	return []Operation{
		Start(),
		scaleOutTiDBBudget(), scaleInTiDBBudget(), scaleOutTiKVBudget(), scaleInTiKVBudget(),
		restartTiDBBudget(), restartTiKVBudget(), configureTiDBBudget(),
		deletePodBudget(),
		{Name: labelCluster, What: "A user sets a label of the TidbCluster.", Reconciles: reconciledBy(0, 1, 0, 0, 0)},
		deleteClusterBudget(),
	}
}

// FindOperation is the operation of a name, without any budget if there is none of the name.
func FindOperation(name string) Operation {
	for _, o := range BudgetedOperations() {
		if o.Name == name {
			return o
		}
	}
	return Operation{Name: name}
}

// reconciledBy is how often the controllers were seen to reconcile, and twice that and a few more
// is what they may: what comes together, and polls of PD, depend on timing.
func reconciledBy(instance, cluster, pd, tikv, tidb int) map[string]Reconciled {
	out := map[string]Reconciled{}
	for name, seen := range map[string]int{"instance": instance, "tidbcluster": cluster, "pdgroup": pd, "tikvgroup": tikv, "tidbgroup": tidb} {
		if seen > 0 {
			out[name] = Reconciled{Seen: seen, Most: 2*seen + 5}
		}
	}
	return out
}

func scaleOutTiDBBudget() Operation {
	return Operation{
		Name: scaleOutTiDB, What: "A user sets the replicas of TiDB from 2 to 3.",
		Writes: []Write{
			{"tidbcluster", "patch", "tidbgroups", 1, 1, whyGroup},
			{"tidbcluster", "patch", "tidbclusters/status", 2, 4, whyCluster},
			{"tidbcluster", "create", "events", 1, 2, whyTurned},
			{"tidbgroup", "patch", "instances", 1, 1, "the Instance"},
			{"tidbgroup", "patch", "instances/status", 1, 2, "the server's name and address, and that it serves"},
			{"tidbgroup", "patch", "poddisruptionbudgets", 1, 1, whyDrain},
			{"tidbgroup", "patch", "tidbgroups/status", 2, 4, "it waits for a server; it has it, UpToDate"},
			{"tidbgroup", "create", "events", 1, 3, "the Instance made; " + whyTurned},
			{"instance", "create", "pods", 1, 1, "the pod"},
			{"instance", "patch", "instances/status", 1, 3, "Ready; its pod before that, if it is not Ready within two seconds"},
		},
		Reconciles: reconciledBy(11, 9, 6, 6, 14),
	}
}

func scaleInTiDBBudget() Operation {
	return Operation{
		Name: scaleInTiDB, What: "A user sets the replicas of TiDB from 3 to 2.",
		Writes: []Write{
			{"tidbcluster", "patch", "tidbgroups", 1, 1, whyGroup},
			{"tidbcluster", "patch", "tidbclusters/status", 2, 4, whyCluster},
			{"tidbcluster", "create", "events", 1, 2, whyTurned},
			{"tidbgroup", "patch", "instances", 2, 2, "it is to retire; its finalizer is taken off"},
			{"tidbgroup", "delete", "instances", 1, 1, "it has retired"},
			{"tidbgroup", "patch", "instances/status", 2, 3, "Drained turns to False and, without connections, to True"},
			{"tidbgroup", "patch", "poddisruptionbudgets", 1, 1, whyDrain},
			{"tidbgroup", "patch", "tidbgroups/status", 2, 4, "it has a server too many; it is gone, UpToDate"},
			{"tidbgroup", "create", "events", 1, 3, "the disruption has begun; " + whyTurned},
			{"instance", "patch", "instances", 1, 1, "its finalizer is taken off: nothing is left of it"},
			{"instance", "patch", "instances/status", 1, 4, "the spec is seen; the pod is not Ready; what it waits for, if that takes two seconds"},
			{"instance", "delete", "pods", 1, 1, "the pod"},
			{"instance", "create", "events", 1, 1, "the pod deleted"},
		},
		Reconciles: reconciledBy(20, 6, 7, 5, 21),
	}
}

func scaleOutTiKVBudget() Operation {
	return Operation{
		Name: scaleOutTiKV, What: "A user sets the replicas of TiKV from 3 to 4.",
		Writes: []Write{
			{"tidbcluster", "patch", "tikvgroups", 1, 1, whyGroup},
			{"tidbcluster", "patch", "tidbclusters/status", 2, 5, whyCluster},
			{"tidbcluster", "create", "events", 1, 2, whyTurned},
			{"tikvgroup", "patch", "instances", 1, 1, "the Instance"},
			{"tikvgroup", "patch", "instances/status", 1, 3, "what PD says of the store: its id, and that it is up"},
			{"tikvgroup", "patch", "poddisruptionbudgets", 1, 1, whyDrain},
			{"tikvgroup", "patch", "tikvgroups/status", 2, 6, "it waits for a store; PD has the store; it is Ready; UpToDate"},
			{"tikvgroup", "create", "events", 2, 5, "the Instance made; StoresHealthy turned, and as this: " + whyTurned},
			{"instance", "create", "persistentvolumeclaims", 1, 1, "the volume"},
			{"instance", "create", "pods", 1, 1, "the pod"},
			{"instance", "patch", "instances/status", 2, 4, "its claim, before the pod is made; Ready; between them its node and address, if it is not Ready within two seconds"},
			{"tidbgroup", "patch", "instances/status", 0, 6, whyLate},
		},
		Reconciles: reconciledBy(13, 10, 13, 18, 12),
	}
}

func scaleInTiKVBudget() Operation {
	return Operation{
		Name: scaleInTiKV, What: "A user sets the replicas of TiKV from 4 to 3. Its regions move within a second or two.",
		Writes: []Write{
			{"tidbcluster", "patch", "tikvgroups", 1, 1, whyGroup},
			{"tidbcluster", "patch", "tidbclusters/status", 2, 5, whyCluster},
			{"tidbcluster", "create", "events", 1, 2, whyTurned},
			{"tikvgroup", "create", "leases", 1, 1, "the Lease without which no member is disrupted, as it is the cluster's first"},
			{"tikvgroup", "update", "leases", 1, 1, "it is given back"},
			{"tikvgroup", "patch", "instances", 2, 2, "it is to retire; its finalizer is taken off"},
			{"tikvgroup", "delete", "instances", 1, 1, "it has retired"},
			{"tikvgroup", "patch", "instances/status", 3, 8, "Drained turns to False, what is left on the store, once a second, and to True; the store is Offline, then a Tombstone"},
			{"tikvgroup", "patch", "poddisruptionbudgets", 3, 3, "kubectl drain may take none while a store is disrupted; " + whyDrain},
			{"tikvgroup", "patch", "tikvgroups/status", 2, 6, "it has a store too many; the store is Offline; it is gone, UpToDate"},
			{"tikvgroup", "create", "events", 4, 6, "the disruption has begun, and ended; StoresHealthy turned, and as this: " + whyTurned},
			{"instance", "patch", "instances", 1, 1, "its finalizer is taken off: nothing is left but the claim"},
			{"instance", "patch", "persistentvolumeclaims", 1, 1, "the claim is marked as retired, and kept"},
			{"instance", "patch", "instances/status", 1, 4, "the spec is seen; the pod is not Ready; what it waits for, if that takes two seconds"},
			{"instance", "delete", "pods", 1, 1, "the pod"},
			{"instance", "create", "events", 2, 2, "the pod deleted, the claim retired"},
			{"tidbgroup", "patch", "instances/status", 0, 6, whyLate},
		},
		Reconciles: reconciledBy(25, 10, 19, 39, 14),
	}
}

func restartTiDBBudget() Operation {
	return Operation{
		Name: restartTiDB, What: "A user sets restartedAt of TiDB. A third server comes first, and leaves in the end.",
		Writes: []Write{
			{"tidbcluster", "patch", "tidbgroups", 1, 1, whyGroup},
			{"tidbcluster", "patch", "tidbclusters/status", 2, 8, whyCluster},
			{"tidbcluster", "create", "events", 1, 2, whyTurned},
			{"tidbgroup", "patch", "controllerrevisions", 1, 1, whyRevised},
			{"tidbgroup", "patch", "instances", 5, 5, "the third Instance; a new spec for each of two; the third is to retire; its finalizer is taken off"},
			{"tidbgroup", "delete", "instances", 1, 1, "the third one has retired"},
			{"tidbgroup", "patch", "instances/status", 3, 6, "that the third server serves; its Drained turns to False and to True; that one does not answer, if that takes three seconds"},
			{"tidbgroup", "patch", "tidbgroups/status", 4, 9, "which server is restarted, and each that serves again: who waits for the roll reads it"},
			{"tidbgroup", "create", "events", 4, 6, "the roll has begun, and ended; the third Instance made, its disruption has begun; " + whyTurned},
			{"instance", "patch", "instances", 1, 1, "the third one's finalizer is taken off"},
			{"instance", "create", "pods", 5, 5, "three pods; before one is deleted, another of the new spec is tried and not kept (dry run)"},
			{"instance", "delete", "pods", 3, 3, "the pods of the old spec, and the third one's"},
			{"instance", "patch", "instances/status", 8, 16, "for each of two: the spec is seen; the pod has to end; the new pod; Ready. The third one's as when TiDB is scaled out, and in"},
			{"instance", "create", "events", 3, 3, "each pod deleted"},
		},
		Reconciles: reconciledBy(61, 16, 11, 8, 56),
	}
}

func restartTiKVBudget() Operation {
	return Operation{
		Name: restartTiKV, What: "A user sets restartedAt of TiKV. One store is restarted after the other.",
		Writes: []Write{
			{"tidbcluster", "patch", "tikvgroups", 1, 1, whyGroup},
			{"tidbcluster", "patch", "tidbclusters/status", 3, 9, whyCluster},
			{"tidbcluster", "create", "events", 1, 2, whyTurned},
			{"tikvgroup", "patch", "controllerrevisions", 1, 1, whyRevised},
			{"tikvgroup", "update", "leases", 6, 6, "for each store the Lease is taken and given back: one member of the cluster at a time"},
			{"tikvgroup", "patch", "poddisruptionbudgets", 6, 6, "for each store: kubectl drain may take none meanwhile, and one again"},
			{"tikvgroup", "patch", "instances", 9, 9, "for each store: it is disrupted, so that its leaders leave; the new spec; it is disrupted no more"},
			{"tikvgroup", "patch", "instances/status", 0, 6, "that a store does not answer PD, and does again, if that takes long"},
			{"tikvgroup", "patch", "tikvgroups/status", 5, 12, "which store is restarted, and each that is back: who waits for the roll reads it"},
			{"tikvgroup", "create", "events", 8, 10, "the roll has begun, and ended; so has each of three disruptions; " + whyTurned},
			{"instance", "create", "pods", 6, 6, "for each store a pod; before the old one is deleted, one of the new spec is tried and not kept (dry run)"},
			{"instance", "delete", "pods", 3, 3, "the pods of the old spec"},
			{"instance", "patch", "instances/status", 7, 15, "for each store: the spec is seen and the pod has to end; the new pod; Ready"},
			{"instance", "create", "events", 3, 3, "each pod deleted"},
			{"tidbgroup", "patch", "instances/status", 0, 6, whyLate},
		},
		Reconciles: reconciledBy(46, 18, 31, 74, 33),
	}
}

func configureTiDBBudget() Operation {
	return Operation{
		Name: configureTiDB, What: "A user changes log.level of TiDB, with configUpdate: Online. No server is restarted.",
		Writes: []Write{
			{"tidbcluster", "patch", "tidbgroups", 1, 1, whyGroup},
			{"tidbcluster", "patch", "tidbclusters/status", 2, 4, whyCluster},
			{"tidbcluster", "create", "events", 1, 2, whyTurned},
			{"tidbgroup", "patch", "configmaps", 1, 1, "the configuration, immutable"},
			{"tidbgroup", "patch", "controllerrevisions", 1, 1, whyRevised},
			{"tidbgroup", "patch", "instances", 4, 4, "for each server: the new spec, which changes its pod in place; that the server has taken the items"},
			{"tidbgroup", "patch", "tidbgroups/status", 2, 4, "a new revision; all have it"},
			{"tidbgroup", "create", "events", 4, 6, "the roll has begun, and ended; each server has taken the items; " + whyTurned},
			{"instance", "patch", "pods", 2, 2, "for each server: its pod says of which revision it is"},
			{"instance", "patch", "instances/status", 2, 4, "for each server: the revision of its pod"},
			{"tidbgroup", "patch", "instances/status", 0, 6, whyLate},
		},
		Reconciles: reconciledBy(10, 6, 4, 4, 18),
	}
}

func deletePodBudget() Operation {
	return Operation{
		Name: deletePod, What: "A user deletes the pod of a TiDB server.",
		Writes: []Write{
			{"tidbcluster", "patch", "tidbclusters/status", 2, 4, whyCluster},
			{"tidbcluster", "create", "events", 0, 2, whyTurned},
			{"tidbgroup", "patch", "instances/status", 0, 2, "the server does not answer, and serves, if that takes three seconds"},
			{"tidbgroup", "patch", "tidbgroups/status", 2, 4, "a server is missing; it has it again"},
			{"tidbgroup", "create", "events", 0, 2, whyTurned},
			{"instance", "create", "pods", 1, 1, "the pod"},
			{"instance", "patch", "instances/status", 2, 5, "the pod ends; the new pod; Ready; between them its node and address, if it is not Ready within two seconds"},
		},
		Reconciles: reconciledBy(14, 6, 3, 3, 12),
	}
}

func deleteClusterBudget() Operation {
	return Operation{
		Name: deleteCluster, What: "A user deletes the TidbCluster, and keeps the claims. Kubernetes deletes what the operators have made, save for pods.",
		Writes: []Write{
			{"pdgroup", "patch", "pdgroups/status", 0, 2, "as with the other groups, though six runs had none"},
			{"tikvgroup", "patch", "tikvgroups/status", 0, 2, "that members are gone, if they are gone before the group; no operator acts on it"},
			{"tidbgroup", "patch", "tidbgroups/status", 0, 2, "that members are gone, if they are gone before the group; no operator acts on it"},
			{"instance", "patch", "instances", 8, 8, "the finalizer of each is taken off"},
			{"instance", "patch", "instances/status", 0, 16, "the pod is not Ready, if it ends before the Instance; what that waits for, if it takes two seconds"},
			{"instance", "delete", "pods", 8, 8, "the pod of each"},
			{"instance", "create", "events", 8, 8, "each pod deleted"},
		},
		Reconciles: reconciledBy(70, 1, 24, 23, 19),
	}
}
