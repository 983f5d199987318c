// Package topology says which labels a member of the database gets.
//
// In go the labels of the node that it runs on, and those that its user sets; out come the
// labels of a store or of a TiDB server, and which of them are missing. It is pure.
package topology
