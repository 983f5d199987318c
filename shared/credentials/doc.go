// Package credentials reads the Secrets with certificates that groups name, and keeps what an
// operator connects with to the members of their clusters.
//
// In goes a group with spec.tls; out come the contents of its Secrets, TLS configurations for
// PD and for members, and an event when a Secret has changed. Secrets are read by name, and
// never listed: an operator needs no more right than get.
package credentials
