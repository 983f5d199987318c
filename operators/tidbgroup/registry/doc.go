// Package registry keeps the list of TiDB servers in PD's etcd true: a server that
// ends leaves its registration there forever, and dashboards show it as down
// (DB-19).
package registry
