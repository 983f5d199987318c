// Package relist makes informers that list all their objects again every so often, in case an
// event of a watch was lost.
//
// In goes a period; out comes a function that makes informers for controller-runtime's cache,
// or nil if the period is zero.
package relist
