// Package tiflash is a stand-in for tiflash: it reads both configuration files
// and the overrides on the command line, registers in PD as a store with the
// label engine=tiflash at its service address, sends heartbeats, and answers on
// TiFlash's ports. It stores no data and computes nothing.
//
// Like the real one it can't work while PD's placement rules are off, and then
// ends at once instead of half working.
package tiflash
