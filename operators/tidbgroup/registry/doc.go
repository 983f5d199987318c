// Package registry keeps the list of TiDB servers in PD's etcd true: a server that ends leaves
// its registration there forever, and dashboards show it as down (DB-19).
//
// In go a group with its Instances, and PD; out come deletions of registrations whose server
// has no Instance and no lease any more.
package registry
