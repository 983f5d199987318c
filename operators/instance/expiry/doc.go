// Package expiry deletes the claims of former members whose time has come.
//
// In goes a retired claim with the annotation groups.tidb.dev/expires; out comes its deletion,
// or when to look again. A user who removes the annotation keeps the claim.
package expiry
