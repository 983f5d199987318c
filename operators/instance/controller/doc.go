// Package controller is the operator of Instances. It knows pods, claims,
// revisions and finalizers, and nothing of any database component.
//
// Reads: Instances, their pods and claims, PersistentVolumes, Nodes, the groups of Instances,
// StorageClasses, VolumeAttributesClasses.
//
// Writes: one pod per Instance, of the same name; the claims of its volumes,
// named <volume>-<instance>; its finalizer on an Instance that was made without it; of the
// Instance's status everything but the member and the member conditions.
//
// Sets: PodReady, VolumesReady and, from them and the readiness gates, Ready,
// UpToDate, Reconciling, Stalled and Paused.
//
// Deletes, besides what claim retention says when an Instance goes: retired claims
// whose annotation groups.tidb.dev/expires has come, which retention put there.
//
// Needs: the conditions that spec.readinessGates names, set by the operator of
// the Instance's group, before it calls the Instance Ready; that operator's
// finalizer groups.tidb.dev/member gone before it stops the pod of an Instance
// that is being deleted. Drained at True, or spec.retire, makes it mark the
// claims that it retains as retired.
//
// Events, on the Instance: PodDeleted (with the difference that
// made a restart necessary), ClaimUpdated,
// ClaimDeleted, ClaimRetired, and a transition of each condition.
//
// A claim that a pod is to use is recorded in status.volumes, by UID, before
// the pod is made. A claim that is missing or another one later is therefore
// known to be lost, also after a crash at any point.
package controller
