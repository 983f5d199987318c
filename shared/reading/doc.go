// Package reading fills the Snapshot of a group: from the caches of the operator, from
// the API server where a cache is not enough, and from what PD said when it was last
// asked. It also says what wakes a group up, and how often PD is asked.
//
// In goes a group; out comes a Snapshot. Nothing is decided here. What is written again
// later, or cannot be undone, is read from the API server; the comments say where.
package reading
