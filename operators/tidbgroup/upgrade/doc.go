// Package upgrade knows between which versions TiDB can be notified of an upgrade,
// and whose servers are in the middle of one.
package upgrade
