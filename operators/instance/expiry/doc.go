// Package expiry deletes the claims of former members whose time has come.
package expiry
