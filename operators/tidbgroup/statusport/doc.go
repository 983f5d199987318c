// Package statusport talks to the status port of running TiDB servers.
//
// In go the host of a server, and labels or an order about an upgrade to give it; out come what
// it was given, by Instance, and an event when an order was answered. Table has the settings
// that a server takes while it runs.
package statusport
