// Package grouptest plays, in memory and without any time passing by itself, what surrounds the
// planner of a group: the API server that keeps what a plan asks for, the instance operator,
// and the pods.
//
// In go a group and a planner; out come the Instances and pods that its plans lead to. A test
// says who moves next, so that every order of moves can be tried, plans from outdated snapshots
// included.
package grouptest
