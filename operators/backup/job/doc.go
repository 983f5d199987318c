// Package job decides what becomes of a Backup, a Restore or a LogBackup.
//
// In go the object and what is seen of it: its Jobs with their pods, the TiDBGroup, other runs,
// and what a running pod tells. Out come a Job to make, Jobs to delete, the finalizer, and what
// status says. A Job's name says object and attempt, so that making it twice makes one. One
// that failed before it wrote anything is tried again; one that had begun is not. A Job is kept
// until its end stands in status.
//
// plan.go has the order, end.go how a Job ended, log.go the task of a LogBackup, point.go what
// is restored to a moment. It is pure.
package job
