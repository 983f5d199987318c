// Package watch says which events wake which objects up, and drops those that
// cannot matter.
package watch
