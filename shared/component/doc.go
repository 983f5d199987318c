// Package component is what the planner has to know of one kind of member, and no more:
// how its pods are rendered (Rendering), and the answers to the questions that come up
// when a member is to be stopped or removed (Component and the optional interfaces
// BatchRestarter, LeaderEvictor and OnlineConfig).
//
// Operators implement these; the planner asks. Implementations are pure.
package component
