// Package statusport asks TiKV's status port for the configuration that a store runs with, and
// has a running store take items of it.
//
// In go the host of a store, and items with their values; out come the configuration that it
// shows, or what it answered to the items. Table has the items that a store takes while it
// runs.
package statusport
