// Package controller is the operator of TidbClusters, the thin umbrella.
//
// It reads TidbClusters and the groups that it made of them. It writes group
// objects and the status of TidbClusters, and talks to nothing else. It orders
// nothing: while it is stopped, everything that it began goes on and finishes.
//
// Conditions set: Ready, UpToDate, Reconciling, Stalled, Paused. Conditions
// needed: Ready, UpToDate and Stalled of the groups, which it mirrors. Events:
// one for each group applied or pruned and for each condition that turns.
package controller
