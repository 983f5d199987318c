// Package storage reads what Kubernetes says of a claim: how far a change of its
// volume is, and why the API server does not let it be made or changed. It is
// pure.
package storage
