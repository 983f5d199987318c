// Package turns says when a process polls which PD.
//
// In go what came of the last poll, and whether something moves in a PD; out come when its next
// poll is due, and when the next of many may begin, so that hundreds of them leave the process,
// and the machine, time to answer. A turn is over when the poll has ended. It knows neither PD
// nor who asks.
package turns
