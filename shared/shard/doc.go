// Package shard lets several sets of operators divide the namespaces of a Kubernetes cluster: a
// set acts in those that carry its name in the label groups.tidb.dev/shard.
//
// In goes the name of a shard and what runs an operator; out comes the operator, run for the
// namespaces that carry the label, and again when they are others. A namespace that loses the
// label is acted in no more from that moment on: running reconciles are ended, and no other
// begins. When none is left an Event of the namespace says so.
package shard
