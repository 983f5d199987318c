// Package status writes what an operator has found: once per reconcile, only
// if it differs from what the object carries, with an Event per transition. Words
// that no operator acts on wait for a second.
package status
