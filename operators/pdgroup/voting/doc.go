// Package voting proves that PD keeps a majority: which member may be stopped, removed or
// given up now, in which order, and who leads instead.
//
// In go the PDGroup, its Instances and what PD answers; out come verdicts with their
// reasons, orders to PD (hand the leader on, remove a member) and what is waited for. What
// PD has not said is never taken for permission. safe.go has the count of votes, prepare.go
// what is done before a stop, leader.go who leads next, replacement.go who counts as dead.
//
// Everything is pure. Of this operator it imports membership and bootstrap.
package voting
