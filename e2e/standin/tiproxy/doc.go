// Package tiproxy is a stand-in for TiProxy: it finds the TiDB servers of a cluster in PD's
// etcd, asks their status ports whether they serve, takes MySQL connections, and moves each
// to another server, between two transactions, when its own is about to stop. It answers
// TiProxy's documented HTTP API.
//
// It is less than TiProxy in what it knows of a session: the database in use, and no
// variables, temporary tables or users with passwords. Prepared statements reach the server
// as text.
package tiproxy
