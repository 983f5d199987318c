// Package planning is the plan for the children of a group: the objects to apply, the change of
// the Lease, the calls to PD, and what a user is told. It also has what the steps of the
// planner hand to each other: the difference of every Instance to its spec (InstanceDiff), and
// the members that leave (Removal).
//
// In go the decisions of the packages that fill a Plan; out comes the Plan, kept consistent by
// a few methods. Nothing is decided here. It is pure.
package planning
