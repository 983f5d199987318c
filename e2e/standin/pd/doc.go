// Package pd is a stand-in for pd-server: a real etcd inside, so that
// membership, joining, leaders and loss of quorum are Raft's own, and package
// model for what PD knows of stores and regions. It takes the flags and the
// configuration file of the real one, and answers its HTTP API and its gRPC
// protocol on the same single client port.
//
// It exists for tests and for the demo, and says so in the first word of every
// line that it logs. It does not sync its files to disk at every step: a killed
// process loses nothing, a machine without power may.
package pd
