// Package v1alpha1 holds the kinds of API group groups.tidb.dev: the groups of the components
// (ComponentTable), Instance, TidbCluster, and those of backups.
//
// Spec flows down, conditions flow up: an operator learns about another one's
// work only from the conditions in status, and the meaning of every condition
// is data in this package (ConditionTable), which the writers, the checkers of
// the tests and docs/conditions.md all read.
//
// +kubebuilder:object:generate=true
// +groupName=groups.tidb.dev
package v1alpha1
