// Package drain waits until the clients of a TiProxy have closed their connections, before
// its process stops.
//
// In: the address of TiProxy's metrics, for how long new connections may still come, and
// the bound. Out: nothing but time; an error if clients are left, or cannot be counted.
package drain
