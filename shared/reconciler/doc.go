// Package reconciler is the loop that the operator of every kind of group runs: observe,
// plan, act, report. A Component brings the four steps, and what only its own kind has.
//
// In goes the name of a group; out come the objects of its plan, its status, and when it is
// looked at again. Nothing is decided here. What all kinds watch, and may do with the API
// server, is listed here too.
package reconciler
