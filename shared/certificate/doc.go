// Package certificate judges the Secrets with certificates that groups with spec.tls name,
// before anything is made or restarted with them.
//
// In go what is in the Secrets, which names members are reached by, and the time; out come
// what a user has to fix, and when the certificates expire. It is pure.
package certificate
