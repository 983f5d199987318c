// Package controller is the operator of TiDBGroups.
//
// It reads TiDBGroups, their Instances, Services, ConfigMaps and
// ControllerRevisions, the PDGroup and TiKVGroups that they depend on, and node
// labels. It writes Instances, Services, ConfigMaps, ControllerRevisions and a
// PodDisruptionBudget, once the Secret with root's password, Jobs that run spec.sql, whose
// pods' messages it reads when they fail, the status of TiDBGroups and, of each Instance's
// status, the member. It sets the labels of running servers through their status port, and where spec.configUpdate wants it asks them what
// configuration they run with, and gives them what a changed one says. It tells one
// of them when an upgrade begins and when it is over.
//
// Conditions set: Ready, UpToDate, Reconciling, Stalled, Paused,
// DependenciesReady. Conditions needed: Ready of the PDGroup and of one
// TiKVGroup of that PDGroup, an Instance's Ready. Events: one for each Instance
// applied, for each server that has taken a configuration, for each condition that
// turns, for notifications of TiDB about an upgrade, and for SQL that begins and ends.
package controller
