// Package httpclient makes the clients by which operators speak HTTP to what runs in a
// namespace: PD and the status ports of members.
//
// In go the domain of Kubernetes and a TLS configuration; out come a transport and a client.
// The owner of the namespace decides what answers there. So a client follows no redirect, uses
// no proxy, connects to no address where clouds hand out credentials, and reads no more than it
// is told to.
package httpclient
