// Package budget renders the PodDisruptionBudget of the members of a component: how many
// of them a drain may evict, given what the operators are stopping themselves.
//
// In go a group and its Snapshot; out comes the budget. Everything is pure.
package budget
