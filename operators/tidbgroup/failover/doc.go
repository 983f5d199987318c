// Package failover decides how many servers are added for those of a TiDBGroup that do not
// serve, by spec.failover.
//
// In go the TiDBGroup and its Instances; out come a number of servers beyond spec.replicas, an
// annotation on the Instances that they stand in for, and when to look again. A server that
// serves again keeps the one in its place until it has served for as long.
//
// It is pure, and imports no other package of this operator.
package failover
