// Package storestate is what decisions about the stores of a group rest on: which store
// is whose, whether PD is to be trusted, and which stores have no Instance any more.
//
// In goes a group and its Snapshot; out comes a State, with one Match for each Instance. An
// Instance's store is the one at its address when it is first seen. From then on it is the
// one with the ID that was recorded: another store at that address means that the data was
// lost or replaced, and is never adopted unless a user asks.
package storestate
