// Package pdtest is a made-up PD for tests that have no use for a whole model
// of one: it says what the test tells it to and carries its orders out on that.
package pdtest
