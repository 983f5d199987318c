// Package polling asks every PD that a group is interested in, in the background, so that no
// reconcile ever waits for PD.
//
// In go the names of PDGroups and how to reach their PDs; out come the Views of what PD answered
// last, and an event when one differs from that before.
package polling
