// Package stage lets a test of one operator play everybody else. A Server is the API server that
// the tests of a package share. A Stage is a namespace in it for one test, with a made-up PD,
// other groups whose status the test writes, and an instance operator that calls every Instance
// Ready as soon as its gates are open. A Subject is the one object whose operator is tried
// there.
//
// In go objects and what others say of them; out come the conditions and objects that the
// operator under test leaves.
package stage
