// Package departure decides whether a member that is deleted or one too many leaves for good,
// or is recreated with its data, and whether that needs the Lease.
//
// In goes a State and an Instance; out come yes or no. How a member leaves is for removal.
package departure
