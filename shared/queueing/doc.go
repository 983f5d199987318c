// Package queueing decides when an object is reconciled.
//
// In go requests of a controller's queue, and which of them a user's edit caused; out come
// calls of the inner reconciler, or a delay. A user's edit goes first, a burst of events is
// one reconcile, and no namespace takes all workers from the others.
package queueing
