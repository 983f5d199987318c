// Package keyset knows the keys of tokens: those by which TiDB servers know the tokens of users
// (spec.authToken), and the one that they sign tokens of sessions with (spec.sessionToken).
//
// In go the TiDBGroup and its Secrets; out come what is wrong with the keys, before a server is
// made or restarted with them, and a new key to sign with. It is pure, but for chance.
package keyset
