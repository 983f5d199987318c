// Package pd asks PD what it knows and gives it the few orders that the operators give.
//
// In goes the name of a PDGroup; out come a View, which is what PD answered last, and an event
// when an answer differs from the one before. Client is one PD. Poller asks every PD that a
// group is interested in, in the background, so that no reconcile ever waits for PD.
//
// What PD answers is easily misread: see the comments at View and Store.
package pd
