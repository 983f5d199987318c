// Package observation reads what a group operator decides from, into one Snapshot:
// Instances, Services, revisions, claims, nodes, the Lease of the cluster, its other
// groups, and what PD said when it was last asked.
//
// In goes a group; out comes a Snapshot. The functions that read take a context and a
// client, all others are pure. What is written again later, or cannot be undone, is
// read from the API server and not from a cache; the comments say where.
package observation
