// Package suite lists the operators of the suite.
//
// Nothing goes in; out comes the program that runs every operator in one process.
package suite
