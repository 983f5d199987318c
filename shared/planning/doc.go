// Package planning is the plan for the children of a group: the objects to apply, the change of
// the Lease, the calls to PD, and what a user is told. It also has what the steps of the
// planner take and return: their Inputs, how each Instance differs from its spec
// (InstanceDiff), the members that leave (Removal), and who is stopped (Disruptions).
//
// In go the decisions of the packages that fill a Plan; out comes the Plan, kept consistent by
// a few methods. Nothing is decided here. It is pure.
package planning
