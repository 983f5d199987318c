// Package statusport asks a TiCDC capture over its HTTP API whether it is the owner.
package statusport
