// Package controller is the operator of TiProxyGroups.
//
// It reads TiProxyGroups, their Instances, Services, ConfigMaps and ControllerRevisions,
// the PDGroup that each names, and node labels. It writes Instances, Services, ConfigMaps,
// ControllerRevisions and a PodDisruptionBudget, the status of TiProxyGroups and, of each
// Instance's status, the member. It gives running proxies the zones of their nodes. Where
// spec.configUpdate wants it, it asks them what configuration they run with, and gives them
// what a changed one says.
//
// Conditions set: Ready, UpToDate, Reconciling, Stalled, Paused, DependenciesReady.
// Conditions needed: Ready of the PDGroup, an Instance's Ready. Events: one for each
// Instance applied, for each proxy that has taken a configuration and for each condition
// that turns.
//
// A proxy learns from PD which TiDB servers there are, and needs none to start. It has
// releases of its own, so it has no place in the order in which a cluster is upgraded.
package controller
