// Package statusport asks TiKV's status port for the configuration that a store
// runs with, and has a running store take items of it.
package statusport
