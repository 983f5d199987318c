// Package process is what every stand-in binary shares: log lines that begin
// with the word stand-in, signals, the strict reading of TOML files, and a
// client of PD that follows the leader.
//
// A stand-in exists so that what the operators render is read by a program
// that refuses what the real one would refuse. Nothing here is of use to a
// product.
package process
