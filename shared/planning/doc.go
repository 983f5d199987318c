// Package planning is the plan for the children of a group: the objects to apply, the
// change of the Lease, the calls to PD, and messages for the user. It also holds what the
// steps of the planner hand to each other: the difference of every Instance to its spec
// (InstanceDiff), and the members that leave (Removal).
//
// These are types with the few methods that keep them consistent; decisions are made in
// the packages that fill them.
package planning
