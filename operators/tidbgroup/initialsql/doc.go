// Package initialsql composes the SQL that makes a cluster's first users, in the pod: the
// operator reads no Secrets, and TiDB takes one file.
//
// In go a TiDBGroup and the other groups of its cluster; out come an init container that writes
// the file, the volumes that it reads, and which group may make the database.
package initialsql
