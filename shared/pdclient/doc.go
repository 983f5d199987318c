// Package pdclient reaches PD's HTTP API with the client library of PD. It is
// kept apart from package pd so that an operator that never asks PD does not
// carry the library, which is a third of the size of a binary.
package pdclient
