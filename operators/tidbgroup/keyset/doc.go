// Package keyset knows the keys by which TiDB servers know the tokens of users
// (spec.authToken), and says what is wrong with them before a server is made or restarted
// with them. It is pure.
package keyset
