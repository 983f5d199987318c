// Package failure is why a run failed, in words that a user can act on.
//
// In go errors of a storage, a database or a tool; out come errors with a reason of a
// condition, what is wrong with a certificate or a key that is mounted, of what kind a
// tool's last words are, and the result that the pod leaves. Secrets are not printed.
//
// It imports result alone.
package failure
