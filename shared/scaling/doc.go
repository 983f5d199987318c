// Package scaling decides which members there are: which slots are filled, who leaves in a
// scale-in, who is replaced for its volumes or because a user asked, and who is added for
// a surge or a rebalance.
//
// In go a group, its Snapshot and its Rendering; out come slots to fill and members to
// remove. When a member may leave is decided in package disruption. Everything is pure.
package scaling
