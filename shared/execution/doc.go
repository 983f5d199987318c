// Package execution carries a plan out and decides nothing: it applies objects, takes and
// releases the Lease, calls PD and deletes what is to go.
//
// In go a group, its Snapshot and its plan; out comes how that ended, as a step. What cannot be
// undone is confirmed right before, by the API server and by PD. If the plan rests on something
// that has changed, nothing is done and the group is planned again.
package execution
