// Package upgrade knows between which versions TiDB can be told of an upgrade, and whose
// servers are in the middle of one.
//
// In go two versions, or the groups of a PDGroup; out come whether TiDB is told, or the name of
// the group that is in the middle. It is pure.
package upgrade
