// Package statusport talks to the status port of running TiDB servers.
package statusport
