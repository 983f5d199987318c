// Package pdclient reaches PD's HTTP API with the client library of PD. It is
// kept apart from package pd so that an operator that never asks PD does not
// carry the library, which is a third of the size of a binary.
//
// In go questions and orders of package pd; out come a View, regions, servers, or an error
// that says whether PD was not reached, refused or answered nonsense. http.go has the
// questions and the connection, orders.go what PD is ordered to do, regions.go and servers.go
// the two long lists. What an answer means, and how long it may be, is in pdanswer.
package pdclient
