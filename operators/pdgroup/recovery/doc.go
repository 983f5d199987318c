// Package recovery rebuilds PD from one of its members when the data of a
// majority is lost for good: a user names the member and the cluster in an
// annotation of the PDGroup. All of it is pure, and every step follows from what
// is observed, so that an operator that is killed anywhere goes on.
//
// What must not happen is that two PDs with the same cluster ID run side by side:
// members with old data are stopped before the survivor forgets them, and never
// start again.
package recovery
