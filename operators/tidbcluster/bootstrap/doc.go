// Package bootstrap decides how a TidbCluster begins with the data of a backup: by one Restore,
// before which no client is let in.
//
// In go the TidbCluster, its Restore and its groups; out come the Restore to make, whether
// clients are kept out, and what is waited for. It knows of the Restore its conditions alone.
// It is pure.
package bootstrap
