package certificate

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
)

var (
	errNoCertificate = errors.New("not a PEM certificate")
	errNoKey         = errors.New("not a PEM private key")
)

// leafOf returns the first certificate of a PEM text.
func leafOf(text []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, errNoCertificate
	}
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, errNoCertificate
	}
	return leaf, nil
}

// privateKey returns the first private key of a PEM text, in one of the forms that TLS
// takes.
func privateKey(text []byte) (any, error) {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if key, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
			return key, nil
		}
		if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
			return key, nil
		}
		if key, err := x509.ParseECPrivateKey(block.Bytes); err == nil {
			return key, nil
		}
	}
	return nil, errNoKey
}
