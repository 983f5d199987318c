// Package validation holds the tests of what the API server itself refuses,
// fills in and prints for all kinds: the schema's half of "bad input is
// answered, and nothing is touched". It has no code of its own.
package validation
