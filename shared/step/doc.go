// Package step names the five ways in which a piece of reconciling can end.
// A wait always has a source that will wake it up and a deadline after which
// it looks again by itself: there is no bare wait.
package step
