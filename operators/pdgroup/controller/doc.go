// Package controller is the operator of PDGroups.
//
// It reads PDGroups, their Instances, Services, ConfigMaps and
// ControllerRevisions, asks PD for its members and their health, and these, while one is disrupted, whether
// they have loaded the regions. It writes
// Instances, Services, ConfigMaps, ControllerRevisions, a PodDisruptionBudget, the
// cluster's disruption Lease, where spec.tls wants it the Secrets or Certificates of all
// members, the status of PDGroups and, of each Instance's status, the member and the
// conditions Joined and Healthy. In PD it hands the leader on before its member stops, or
// when a user's annotation evicts it, and has members removed.
//
// Conditions set: Ready, UpToDate, Reconciling, Stalled, Paused, Bootstrapped,
// QuorumHealthy. Conditions needed: an Instance's Ready. Events: one for each
// Instance applied and for each condition that turns.
//
// Bootstrap: slots 0…n-1 start together with --initial-cluster naming all of
// them. Once PD answers with a cluster ID and a quorum, the ID is written to
// status, Bootstrapped latches, and from then on every template says --join. A
// claim that a member has used and that is gone holds its Instance back
// (claimLoss: Hold), so that a member that forgot its data can never bootstrap a
// second cluster with the first one's arguments.
//
// Recovery: an annotation has PD rebuilt from one member when the data of a
// majority is lost; package recovery says how. Meanwhile the Instances of
// everything that PD serves are read as well. Events: QuorumRecovery, one for each
// phase.
package controller
