// Package issuance has the certificates of a cluster made, by an issuer of cert-manager or by
// a CA of the cluster's own.
//
// In go the groups of a PDGroup and what there is of Secrets and Certificates; out come those
// to write, and why a certificate is not there. Reader and Act touch the world, all else is
// pure. Only the operator of PDGroups makes certificates: no other has to write Secrets.
package issuance
