// Package lease is the right to stop a stateful member on purpose. There is one
// per cluster, a Lease of coordination.k8s.io named <pdgroup>-disruption, and
// its holder is the only member that is restarted, moved or removed, of
// whatever kind and group. kubectl get lease shows who it is.
package lease
