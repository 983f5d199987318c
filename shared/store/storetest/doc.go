// Package storetest runs the operator of a kind of stores against a real API
// server, with everything around it played by the test: a PD that says what the
// test wants, a PDGroup whose status the test writes, and an instance operator
// that calls every Instance Ready as soon as its gates are open.
package storetest
