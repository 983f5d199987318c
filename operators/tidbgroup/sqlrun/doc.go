// Package sqlrun runs SQL against a living TiDB, once, in the pod of a Job: the
// operators read no Secrets, and the pod mounts them. It connects, runs one statement
// after the other on one connection, and says in one line how that ended. Nothing
// that it says holds a password or, where the SQL comes from a Secret, any of its text.
package sqlrun
