package pd

// Server is a TiDB server that has registered in PD's etcd, where dashboards and
// monitoring look for servers: the key /topology/tidb/ADDRESS/info stays when the
// server ends, .../ttl has a lease of 45 seconds.
type Server struct {
	// Address that the server advertises, host:port.
	Address string
	// Alive says that its lease has not ended.
	Alive bool
	// Revision of etcd at which it has last registered.
	Revision int64
}
