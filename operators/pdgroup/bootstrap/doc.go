// Package bootstrap keeps PD's cluster one while it is bootstrapped. Members that start with
// --initial-cluster on empty volumes make a new cluster, whatever others have made before;
// until its ID is known, nothing else shows that there has been one.
//
// In go the PDGroup, its Instances and claims, and what PD answers; out come the initial
// members, what their --initial-cluster lists, the cluster's ID, with which argument a member's
// template starts it, and why no member may start. Everything is pure. slots.go decides who
// starts, start.go how, identity.go whose PD it is, bootstrap.go reads and records what is decided.
package bootstrap
