// Package lease is the right to stop a stateful member on purpose. There is one per cluster, a
// Lease of coordination.k8s.io named <pdgroup>-disruption. Its holder is the only member
// that is restarted, moved or removed, of whatever kind and group.
//
// In go an Instance and the State of the Lease; out comes whether the Instance holds it, or is
// covered by it. It is pure: package leaseclient reads and writes the Lease. kubectl get lease
// shows the holder.
package lease
