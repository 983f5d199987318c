// Package model is the one place that knows what the database does: stores and
// their states, regions with peers and leaders, schedulers, configuration and
// placement, as seen by a placement driver (PD).
//
// It is pure: no network, no goroutines, no wall clock. Time comes from a
// [Clock]; whatever happens by itself in a real cluster (leaders that move,
// peers that are repaired, stores that go Disconnected, Down or Tombstone) is
// worked out lazily from the time that has passed, so that thirty-minute rules
// cost microseconds in a test.
//
// The PD stand-in keeps a [Cluster] in etcd, package pdsim runs it in process.
// Who the PD members are, and which of them leads, is the other half of PD and
// lies behind the interface [Members].
//
// The surprises of a real PD are behaviours of the model and always on: stores
// are Disconnected after a change of the PD leader, Down before their first
// heartbeat, and can't be removed while too few would remain.
package model
