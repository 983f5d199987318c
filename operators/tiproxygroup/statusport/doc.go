// Package statusport asks TiProxy's HTTP API for the configuration that a proxy runs with,
// and has a running proxy take items of it.
package statusport
