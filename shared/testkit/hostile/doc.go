// Package hostile gives the fuzz tests of the operators what a user or a program that means
// harm may hand to one.
//
// In go bytes of the fuzzer; out come a spec, a text of configuration and the answers of a PD,
// and a judgement of what an operator makes of them: no panic, no more memory than one object
// may take, and an answer in status.
package hostile
