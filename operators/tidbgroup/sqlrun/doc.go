// Package sqlrun runs SQL against a living TiDB, once, in the pod of a Job: the operators read
// no Secrets, and the pod mounts them.
//
// In goes a command line; out come how many statements were carried out, or one line that says
// why not. It runs one statement after the other on one connection. Nothing that it says holds
// a password or, where the SQL comes from a Secret, any of its text.
package sqlrun
