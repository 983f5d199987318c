// Package statusport asks TiFlash's status port whether a store serves.
//
// In goes the host of a store; out comes the state that it reports, empty if its version does
// not tell, and whether that state is final.
package statusport
