// Package instancetest makes Instances of a TiKVGroup for tests of the planner.
//
// In goes a slot, or an Instance; out comes an Instance in a state that has a name: deleted,
// restarting, not ready.
package instancetest
