// Package group plans the children of a group, for every kind of group. steps.go lists the
// steps of a plan in their order.
//
// In go a group, its Snapshot and its Rendering; out comes the plan: what to create, change and
// delete, who may stop, and why the group is not yet what its spec asks for. Reading, carrying
// out and reporting are in reading, execution and groupstatus. What is particular to a
// component comes in the Rendering. It is pure.
package group
