// Package keyset knows the keys of tokens: those by which TiDB servers know the tokens of
// users (spec.authToken), and the one that they sign tokens of sessions with
// (spec.sessionToken). It says what is wrong with them before a server is made or restarted
// with them, and makes the latter. It is pure, but for chance.
package keyset
