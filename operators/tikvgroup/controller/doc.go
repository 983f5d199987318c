// Package controller is the operator of TiKVGroups.
//
// It reads TiKVGroups, the PDGroup that each names, their Instances, Services,
// ConfigMaps and ControllerRevisions, and the labels of nodes where it watches
// all namespaces; and asks PD for its stores. It writes Instances, Services,
// ConfigMaps, ControllerRevisions, a PodDisruptionBudget, the cluster's disruption
// Lease, the status of TiKVGroups and, of each Instance's status, the member and the
// conditions Joined, Healthy and Drained. In
// PD it sets labels of its own stores, moves leaders away from a store that is to
// stop or to leave, and has stores removed, one of the cluster at a time by the
// disruption Lease; and keeps leaders off a store whose Instance a user has
// annotated, for as long as that stands. It has a store write its log backups out before that is
// restarted. A running store is asked what configuration it runs with, and given what a
// changed one says, where spec.configUpdate wants that.
//
// Conditions set: Ready, UpToDate, Reconciling, Stalled, Paused,
// DependenciesReady, StoresHealthy, HoldsRegions. Conditions needed: the PDGroup's
// Ready, before the first pod starts and before each that is added; an Instance's
// Ready. Events: one for each Instance applied, for each store's labels set, for
// each store that has taken a configuration and for each condition that turns.
//
// What PD answers is used only if it comes from the cluster whose ID stands in
// the PDGroup's status. An Instance's store is recorded by its ID when it first
// registers, and no other store is ever taken for it.
package controller
