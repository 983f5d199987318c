// Package store is what the operators of TiKVGroups and TiFlashGroups do alike,
// because the members of both are stores in PD: finding out which store is
// whose, whether it is healthy, which labels it lacks and whether the group
// serves. Everything but SetLabels is pure.
//
// An Instance's store is the one at its address when it is first seen. From
// then on it is the one with the ID that was recorded: another store at that
// address means that the data was lost or replaced, and is never adopted
// without a person's word.
package store
