// Package rollout decides which revision the members of a group are to run and when they may
// get it: the order of groups, a pause, the limit of a canary, maintenance windows.
//
// In go a group, its Snapshot and its Rendering; out come the target revision, whether a member
// may go to it now and, if not, what it waits for. It also reports which Services are kept, and
// which old revisions may go. It is pure.
package rollout
