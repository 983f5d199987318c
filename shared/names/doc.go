// Package names gives every object of the suite its name.
//
// In go the names of a group, a slot or a volume; out come names of objects and hosts, or the
// slot that a name stands for. Names are deterministic, so that creating an object twice is
// harmless, and those that users of TiDB know: basic-pd-0, data-basic-tikv-1, basic-tidb-peer.
// It is pure.
package names
