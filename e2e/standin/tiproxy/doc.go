// Package tiproxy is a stand-in for TiProxy: it finds the TiDB servers of a cluster in PD's
// etcd, asks their status ports whether they serve, takes MySQL connections, and moves each
// to another server, between two transactions, when its own is about to stop. It answers
// TiProxy's documented HTTP API.
//
// As with TiProxy, a session is moved only if its server signs a token for it (SHOW
// SESSION_STATES). Otherwise it stays there until the server closes the connection, and the
// client's next statement fails. The token is not shown to the other server: what a real TiDB
// makes of it is tested in e2e/conformance.
//
// It has labels, and prefers no server of its zone.
//
// It is less than TiProxy in what it knows of a session: the database in use, and no
// variables, temporary tables or users with passwords. Prepared statements reach the server
// as text.
package tiproxy
