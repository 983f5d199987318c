// Package memorydb is a MySQL server in memory, for tests of what speaks SQL, and a proxy that
// makes a network worse. Its transactions run one at a time, those of other connections wait.
package memorydb
