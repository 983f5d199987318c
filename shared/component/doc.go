// Package component is what the planner has to know of one kind of member: how its pods are
// rendered (Rendering), and the answers to the questions that come up when a member is to be
// stopped or removed (Component, and the optional interfaces BatchRestarter, LeaderEvictor and
// OnlineConfig). Operators implement these; the planner asks.
//
// In go a group, its Rendering and a slot; out comes the Instance that fills the slot. All else
// here are types. It is pure.
package component
