// Package leaseclient reads and writes the Lease that package lease is about.
//
// In go a PDGroup and the State that the Lease is to have; out comes the State that it has. A
// write fails with a conflict if the Lease has changed since it was read.
package leaseclient
