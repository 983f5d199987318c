// Package campaign tries to break the suite's promises, everywhere instead of
// here and there: it runs a scenario undisturbed, takes from the record every
// point at which something can go wrong, and runs the scenario again for each
// of them. An attempt fails when anything but time differs from the undisturbed
// run: the objects at the end, how often a pod was replaced, how many PD
// clusters were bootstrapped; and when an alarm is raised, an invariant breaks, it does
// not arrive in bounded time, or does not come to rest.
//
//	CRASH    an operator dies right after a write, and starts again; or all do
//	DROP     an event of a watch is lost
//	STALE    a watch stands still for a while
//	FAULT    a write is refused in one of five ways, or its reply is lost
//	KILL     a pod is deleted right after a write, with its grace or without
//	DELETE   everything is deleted right after a write, in some order: all but the claims has to go
//	MUTATE   a field of a living cluster's spec takes a value, and goes back
//	UPGRADE  the operators of a next version take over, which renders otherwise
//
// Three have an attacker beside the scenario, in a namespace of his own, and
// ask what has become of the others: their objects, requests and time.
//
//	HOSTILEPD  a PD answers an endpoint that operators ask in one of some fifty ways
//	TENANT     a user with the rights of edit does what he should not, or gives a field
//	           a value that is too large or leads elsewhere
//	DELAY      how long edits of the others wait, beside such a PD or tenant and without;
//	           it measures and does not judge
//
// What differs by chance is kept out by how things are named, not by tolerance:
// points are named by object and count (see package faults), and outcomes are
// normalised (see [scenario.Outcome]). Every finished attempt is a line in a
// journal, so that a campaign can be interrupted, sharded and sampled, and the
// tables of docs/reliability.md are written from it.
package campaign
