// Package watch says which events wake which objects up, and drops those that cannot matter.
//
// In goes an event of a watched object; out come the names of the objects to reconcile, or
// nothing.
package watch
