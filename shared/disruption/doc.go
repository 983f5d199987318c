// Package disruption decides which member may be stopped now, and brings what has begun
// to its end: check, take the Lease of the cluster, prepare, permit the stop, recover,
// release the Lease. Members that may be restarted at the same time go as one batch.
//
// In go the members that are to be restarted or removed; out come the change of the
// Lease, calls to PD, permissions, and why others wait. The Lease, PD and the Instances
// are all the state there is: a run that begins at any step goes on from there. Everything
// is pure; what a permission rests on is written down as a Recheck, which is asked again
// right before.
package disruption
