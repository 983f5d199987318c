// Package storage reads what Kubernetes says of a claim.
//
// In go a claim, or the API server's answer to a write of one; out come how far a change of its
// volume is, whether it may ask for another size or class, and why it may not be made or
// changed. It is pure.
package storage
