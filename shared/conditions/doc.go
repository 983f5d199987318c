// Package conditions computes the conditions of an object. A Set starts from
// what the object carries, so that transition times survive, and ends with
// Finish, the one place where Ready, UpToDate, Reconciling, Stalled and Paused
// are derived from the rest.
package conditions
