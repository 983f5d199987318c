// Package affected finds the tests that a change of one package can break: its own, and those
// of every package that depends on it, in all modules of the repository.
//
// In go a package and the tests of a module; out come the tests to run and, apart from them,
// those that start a control plane, as they take minutes.
package affected
