// Package vulncheck asks the Go vulnerability database about modules, with govulncheck.
//
// In go directories of modules; out come a report, and an error if code can reach a known
// vulnerability, or if the database does not answer and the check is not optional.
package vulncheck
