// Package statusport asks a TiCDC capture over its HTTP API whether it is the owner.
//
// In goes the host of a capture; out comes its state, empty if its version does not tell.
package statusport
