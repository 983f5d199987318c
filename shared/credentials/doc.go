// Package credentials reads the Secrets with certificates that groups name, and keeps what
// an operator connects with to the members of their clusters: the client certificate of the
// cluster, until the Secret has another one.
//
// Secrets are read by name, and never listed: an operator needs no more right than get.
package credentials
