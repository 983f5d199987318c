// Package turns says when a process polls which PD: when one is due, and when the next of
// many may begin, so that hundreds of them leave the process, and the machine, time to answer.
//
// In goes what came of the last poll, and whether something moves in a PD; a turn is over when
// the poll has ended. It knows neither PD nor the callers.
package turns
