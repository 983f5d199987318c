// Package cause names why a network call has failed, in words that are the same
// for the same cause.
package cause
