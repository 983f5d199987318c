// Package machine tells tests and measurements how busy the machine is on which they run.
//
// In goes what the kernel says; out comes how many processes wanted a processor of late.
package machine
