// Package componenttest has components for tests of the planner, which answer every
// question in one way.
package componenttest
