// Package groupstatus reports what became of a group: its conditions, its counts, the
// members in the status of its Instances, and the Events of a rollout.
//
// Report is pure: in go Snapshot, plan and outcome, out comes the status, which
// package execution writes.
package groupstatus
