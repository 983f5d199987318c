// Package queueing decides when an object is reconciled: what a user changed before all
// else, a burst of events as one, and no more objects of a namespace at once than leaves
// workers for the others.
package queueing
