// Package membership says who is a member of PD, who may join it now, and who is left over.
//
// In go the PDGroup, its Instances and what PD lists; out come how many Instances may be
// made and why no more, the members without an Instance, whether one that was
// leaving is back, and in scheme.go the peer URLs
// that PD is to list when the cluster is switched to TLS or back. Everything is pure.
package membership
