// Package expiring keeps values for a time. In go values and their keys; out come those that have
// not expired. What is never asked for again is dropped, too.
package expiring
