// Package controller is the operator of TiCDCGroups.
//
// It reads TiCDCGroups, the PDGroup that each names, the TiKVGroups of that PDGroup, their
// Instances, Services, ConfigMaps and ControllerRevisions, and node labels. While captures
// are restarted or removed it asks them which one is the owner. It writes Instances,
// Services, ConfigMaps, ControllerRevisions and a PodDisruptionBudget, the status of
// TiCDCGroups and, of each Instance's status, the member.
//
// Conditions set: Ready, UpToDate, Reconciling, Stalled, Paused, DependenciesReady.
// Conditions needed: Ready of the PDGroup and of one TiKVGroup of that PDGroup, an
// Instance's Ready. Events: one for each Instance applied and for each condition that turns.
//
// Captures stop one after the other, the owner last, so that it hands over to one that is
// updated already. A hook of the pod hands over what a capture owns and copies.
package controller
