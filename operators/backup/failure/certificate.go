package failure

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
)

// DescribeCertificateError says why a certificate that a server has shown cannot be verified; empty if that is
// not what an error is about. The texts of the library tell the time, which a message must not.
func DescribeCertificateError(err error) string {
	var (
		unverified *tls.CertificateVerificationError
		unknown    x509.UnknownAuthorityError
		host       x509.HostnameError
		invalid    x509.CertificateInvalidError
	)
	switch {
	case !errors.As(err, &unverified):
		return ""
	case errors.As(err, &unknown):
		return "it is signed by an unknown CA"
	case errors.As(err, &host):
		return "it is not for " + host.Host
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "it has expired, or is not valid yet"
	}
	return "it is not one of a server"
}
