// Package pd asks PD what it knows and gives it the few orders that the
// operators give.
//
// Client is one PD; View is what asking it found. Poller asks every PD that a
// group is interested in, in the background, and wakes the groups up when an
// answer differs from the one before, so that no reconcile ever waits for PD.
//
// What PD answers is easily misread: see the comments at View and Store.
package pd
