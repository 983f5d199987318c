// Package store is what the operators of TiKVGroups and TiFlashGroups do alike, because the
// members of both are stores in PD. Component answers the planner's questions by the packages
// below: storestate, placement, failover, safety, departure, leaders and removal.
//
// In goes a group and its Snapshot; out come a Component, and the conditions and members of
// the group's status. Everything but SetLabels is pure.
package store
