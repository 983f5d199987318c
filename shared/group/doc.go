// Package group is what the four group operators do alike: reading what a group
// owns, planning its children from a rendering, carrying the plan out and
// reporting it. What is particular to a component stays in its own operator:
// the rendering, the gate, the safety function and what it asks of PD.
//
// Planning and reporting are pure.
package group
