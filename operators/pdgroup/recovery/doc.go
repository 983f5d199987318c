// Package recovery rebuilds PD from one of its members when the data of a majority is lost for
// good: a user names the member and the cluster in an annotation of the PDGroup.
//
// In go the PDGroup and its Snapshot; out come the phase for the status, the plan of that
// phase, and why a request is not obeyed. Every step follows from what is observed, so that an
// operator that is killed anywhere goes on. Two PDs with the same cluster ID must never run
// side by side: members with old data are stopped before the survivor forgets them, and never
// start again. It is pure.
package recovery
