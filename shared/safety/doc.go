// Package safety decides whether a member may be stopped now: alone, or in a batch with the
// others of its zone. PD and every other store of the kind must work, and no region may be
// left without a majority of its voters.
//
// In goes a State and a disruption; out comes a Verdict. stop.go asks about stores, majority.go
// about regions, batch.go about zones. A user may override it for one pod.
package safety
