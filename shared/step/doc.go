// Package step names the five ways in which a step of a reconcile can end: Done, Wait, After,
// Fail and Stall. A Wait always has a source that will wake it up and a deadline after which
// it looks again by itself: there is no bare wait.
//
// In go the ends of several steps; out comes the most pressing one. RunInParallel runs steps
// side by side.
package step
