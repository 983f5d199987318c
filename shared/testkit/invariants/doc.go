// Package invariants checks what must hold for the status of every object of
// the API group, in every version that any client ever reads. It is a pure
// function over one object, so that the same check runs after each reconcile in
// unit tests, in watchers beside the operators, and over recorded objects.
package invariants
