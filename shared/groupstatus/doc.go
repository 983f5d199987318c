// Package groupstatus reports what became of a group: its conditions, its counts, and the state
// of its members.
//
// In go a group, its Snapshot, its plan and what became of it; out come the status and its
// conditions, which package execution writes. It is pure.
package groupstatus
