// Package progress is how far the tool of a run is: its program reads it from the log of the
// tool and tells it at a port of the pod, and the backup operator asks there while the run
// goes on.
package progress
