// Package invariants checks what must hold for the status of every object of the API group, in
// every version that any client ever reads.
//
// In goes one object; out comes what is wrong with it. It is pure, so that the same check runs
// after each reconcile in unit tests, in watchers beside the operators, and over recorded
// objects.
package invariants
