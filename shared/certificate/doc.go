// Package certificate judges the Secrets with certificates that groups with spec.tls name,
// before anything is made or restarted with them.
//
// In go what is in the Secrets, who is to be reached by which name, and the time; out come
// what a person has to mend, and when the certificates expire. It is pure.
package certificate
