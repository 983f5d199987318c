// Package leaseclient reads and writes the Lease that package lease is about.
package leaseclient
