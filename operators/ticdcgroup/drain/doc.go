// Package drain hands over what a TiCDC capture owns and copies to the other captures,
// before its process stops: CDC-01.
//
// In: the address of the capture's HTTP API, and a bound. Out: calls to resign as owner and
// to drain the capture; an error if tables are left.
package drain
