// Package execution carries a plan out and decides nothing: it applies objects, takes and
// releases the Lease, calls PD and deletes what is to go.
//
// What cannot be undone is confirmed right before, by the API server and by PD. If the
// plan rests on something that has changed, nothing is done and the group is planned
// again.
package execution
