// Package observation is the Snapshot that a group operator decides from, and questions
// about it: who holds the Lease of the cluster, whose restart a user asked for, whether
// the group is on its way to its spec.
//
// Package reading fills it. Everything here is pure.
package observation
