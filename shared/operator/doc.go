// Package operator is the one main that every operator binary shares: flags, logging, the
// manager with its caches, leader election, health, metrics, and a graceful end.
//
// In go a command line and Definitions, in which each operator says what is its own; out comes
// an exit code when the process has to end. While it runs, each controller gets what it works
// with as an Env.
package operator
