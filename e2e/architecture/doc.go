// Package architecture holds the source tree to the rules of
// docs/architecture.md: which module may import what, what an operator's folder
// looks like, and what may not appear anywhere.
package architecture
