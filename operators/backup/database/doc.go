// Package database is the TiDB that a run copies or writes: its login, and the statements
// that the program runs itself.
//
// In go address, user, password and certificates; out come a connection or why there is
// none, the databases of users, a time stamp, and whether one server is older than another.
//
// server.go connects, statement.go asks and executes. It imports failure alone.
package database
