// Package affected finds the tests that a change of one package can break: its own,
// and those of every package that depends on it, in all modules of the repository.
// Tests that start a control plane are set apart, as they take minutes.
package affected
