// Package instancetest makes Instances of a TiKVGroup for tests of the planner.
package instancetest
