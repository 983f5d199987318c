// Package cluster is the cluster that BR backs up or restores, as PD is asked about it.
//
// In go PD's URL and certificates; out come BR's arguments for them, and what a run of BR has
// left in PD: safe points, which keep old data, and schedulers that are paused. Both are
// removed after each run, those of others are left alone.
//
// It imports no other package of this operator.
package cluster
