// Package initialsql composes the SQL that makes a cluster's first users, in the
// pod: the operator reads no Secrets, and TiDB takes one file.
package initialsql
