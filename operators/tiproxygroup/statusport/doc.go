// Package statusport asks TiProxy's HTTP API for the configuration that a proxy runs with, and
// has a running proxy take items of it.
//
// In go the host of a proxy, and items with their values or labels; out come the configuration
// that it shows, or what it answered to what it was given. Table has the items that a proxy
// takes while it runs.
package statusport
