// Package upgrade knows between which versions TiDB can be told of an upgrade,
// and whose servers are in the middle of one.
package upgrade
