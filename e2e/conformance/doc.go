// Package conformance holds what stands in for PD to the recorded answers of a
// real PD v8.5.7: the PD stand-in with its real etcd, and the simulation that
// runs in process. Both play the same scenario, and each recorded call is made
// again at its place in it.
//
// Status codes, headers that matter, and bodies are compared. What must differ
// (times, ids of members, addresses, counts of regions that move) is compared by
// kind only; see compare_test.go.
//
// With CONFORMANCE=real, as make conformance sets it, the PD that the test kit builds
// plays the same, with stores that have regions and no data. It is of April 2024:
// known_test.go lists in what it differs, and why. Its clock can't be moved. What has to
// wait waits for what it waits for to be seen, and long times are set to short ones.
package conformance
