// Package tidb is a stand-in for tidb-server: it takes the same flags and
// configuration file, waits for PD and a store as the real one does, answers
// the MySQL protocol and TiDB's status port, and registers itself in PD's etcd.
//
// The SQL engine is github.com/dolthub/go-mysql-server on tables in memory, so
// there are no transactions (each statement takes effect at once, ROLLBACK does
// nothing) and nothing of TiDB's planner. So that all
// servers of a cluster show the same data, and a restarted one the old data,
// statements that write are logged in PD's etcd and replayed by every server:
// good for a demo's thousands of rows, and for nothing else.
package tidb
