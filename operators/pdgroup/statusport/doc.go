// Package statusport asks a member of PD whether it can lead.
//
// In goes the host of a member; out comes whether it has loaded the regions, empty if its
// version does not tell.
package statusport
