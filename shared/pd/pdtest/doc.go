// Package pdtest is a made-up PD for tests that have no use for a whole model of one.
//
// In go the View that it shows, and orders; out come the orders that it was given. It says what
// the test tells it to, and carries its orders out on that.
package pdtest
