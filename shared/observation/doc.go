// Package observation is the Snapshot that a group operator decides from, and questions about
// it.
//
// In goes a Snapshot, which package reading fills; out come answers: who holds the Lease of the
// cluster, whose restart a user asked for, whether the group is on its way to its spec. It is
// pure.
package observation
