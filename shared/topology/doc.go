// Package topology says which labels a member of the database gets, and which nodes its pod may
// come to.
//
// In go the labels of the node that it runs on, and those that its user sets; out come the
// labels of a store or of a TiDB server, and which of them are missing. Of a pod template and
// nodes it says which of them take it. It is pure.
package topology
