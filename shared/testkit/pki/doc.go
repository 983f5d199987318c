// Package pki makes certificates for tests: a CA, and what it signs.
package pki
