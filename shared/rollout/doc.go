// Package rollout decides which revision the members of a group are to run and when they
// may get it: the order of groups, a pause, the limit of a canary, maintenance windows. It
// also reports which Services follow, and which old revisions may go. Everything is pure.
package rollout
