// Package componenttest has components for tests of the planner, which answer every question in
// one way.
//
// Nothing goes in; out come component.Components, such as one whose members may all be stopped.
package componenttest
