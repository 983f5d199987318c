// Package planning is the plan for an Instance: which claims and which pod are made, changed
// or deleted, when the finalizer is set and goes, and what remains to be waited for.
//
// In go the decisions of volumeclaim and of the controller, which fill the Plan; out comes
// what the controller carries out. Wait and Stall are the two ways in which a decision ends
// that cannot go on, with their deadlines.
//
// It is pure, and imports no other package of this operator.
package planning
