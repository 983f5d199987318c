package certificate

import (
	"crypto/x509"
	"slices"
	"sync"
	"time"
)

// proofs are the chains by which a certificate was verified. A signature costs more to verify
// than all else that a group asks of a Secret, and groups ask several times a second.
type proofs struct {
	mu    sync.Mutex
	known map[proof][]*x509.Certificate
}

// proof is what was verified.
type proof struct {
	roots *x509.CertPool
	usage x509.ExtKeyUsage
}

// mostProofs bounds how many are kept of one certificate: each Secret that is read again has
// roots of its own.
const mostProofs = 16

// prove returns the chain by which one of the roots has signed a certificate for a usage. A
// chain that was found is used again while all of its certificates are valid.
func (p Pair) prove(roots *x509.CertPool, usage x509.ExtKeyUsage, now time.Time) ([]*x509.Certificate, error) {
	p.proofs.mu.Lock()
	defer p.proofs.mu.Unlock()
	key := proof{roots, usage}
	invalid := func(c *x509.Certificate) bool { return now.Before(c.NotBefore) || now.After(c.NotAfter) }
	if chain := p.proofs.known[key]; chain != nil && !slices.ContainsFunc(chain, invalid) {
		return chain, nil
	}
	chains, err := p.leaf.Verify(x509.VerifyOptions{Roots: roots, Intermediates: p.above, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{usage}})
	if err != nil {
		return nil, err
	}
	if len(p.proofs.known) >= mostProofs || p.proofs.known == nil {
		p.proofs.known = map[proof][]*x509.Certificate{}
	}
	p.proofs.known[key] = chains[0]
	return chains[0], nil
}
