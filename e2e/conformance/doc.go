// Package conformance holds what stands in for PD to the recorded answers of a
// real PD v8.5.7: the PD stand-in with its real etcd, and the simulation that
// runs in process. Both play the same scenario, and each recorded call is made
// again at its place in it.
//
// Status codes, headers that matter, and bodies are compared. What must differ
// (times, ids of members, addresses, counts of regions that move) is compared by
// kind only; see compare.go.
package conformance
