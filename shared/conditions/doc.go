// Package conditions computes the conditions of an object.
//
// In go the conditions that the object carries, so that transition times survive, and what was
// found out. Out come the new conditions, and which of them have turned. Finish is the one
// place where Ready, UpToDate, Reconciling, Stalled and Paused are derived from the rest. It is
// pure.
package conditions
