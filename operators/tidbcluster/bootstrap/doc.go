// Package bootstrap decides how a TidbCluster begins with the data of a backup: by one Restore,
// before which no client is let in. It is pure, and knows of the Restore its conditions alone.
package bootstrap
