// Package pki makes certificates for tests.
//
// In go names and a time; out come a CA, and what it signs, as the data of a Secret, as files
// or as a server's configuration.
package pki
