// Package cause says why a network call has failed. In goes its error; out comes a text that is
// the same for the same cause, so that it can stand in a status: it has no local ports.
// Or in goes the answer of the API server to a write; out comes whether another object has the name.
package cause
