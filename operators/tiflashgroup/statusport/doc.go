// Package statusport asks TiFlash's status port whether a store serves, and
// remembers what it said.
package statusport
