// Package controller is the operator of TiFlashGroups.
//
// It reads TiFlashGroups, the PDGroup that each names, the TiKVGroups of that
// PDGroup, their Instances, Services, ConfigMaps and ControllerRevisions, and
// the labels of nodes where it watches all namespaces; and asks PD for its
// stores and whether placement rules are on. While one of its stores is, or may be,
// restarted it asks the status ports of the cluster's TiFlash stores whether they
// serve. It writes Instances, Services,
// ConfigMaps, ControllerRevisions, a PodDisruptionBudget, the cluster's disruption
// Lease, the status of TiFlashGroups and, of each Instance's status, the member and the
// conditions Joined, Healthy and Drained. In
// PD it turns placement rules on, sets labels of its own stores, and has stores
// removed, one of the cluster at a time by the disruption Lease.
//
// Conditions set: Ready, UpToDate, Reconciling, Stalled, Paused,
// DependenciesReady, StoresHealthy, HoldsRegions. Conditions needed: Ready of the
// PDGroup and of one of its TiKVGroups, before the first pod starts and before each that is
// added; an Instance's Ready. Events: one for each Instance applied, for
// placement rules turned on, for each store's labels set and for each condition
// that turns.
//
// Placement rules are what TiFlash's replicas are made of: no pod starts before
// PD says that they are on.
//
// What PD answers is used only if it comes from the cluster whose ID stands in
// the PDGroup's status. An Instance's store is recorded by its ID when it first
// registers, and no other store is ever taken for it.
package controller
