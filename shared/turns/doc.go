// Package turns says when a process may poll the next of many PDs, so that hundreds of them
// leave it, and the machine, time to answer.
//
// In go whether something moves in a PD, and whether its last poll failed; a turn is over when
// the poll has ended. It knows neither PD nor who asks.
package turns
