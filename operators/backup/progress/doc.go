// Package progress is how far the tool of a run is.
//
// In goes the log of the tool, in the pod; out comes a Report, which the program in the pod
// tells at a port. The backup operator asks there while the run goes on. Nothing depends on the
// answer.
package progress
