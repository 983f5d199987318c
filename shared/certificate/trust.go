package certificate

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// digestBytes are as many as tell digests apart that a user compares.
const digestBytes = 5

// Trust is a digest of the CAs that the users of a Secret trust, and of the one that has
// signed its certificate; empty if there is no certificate.
func (s Secret) Trust() string {
	pair, _ := s.Pair() // none has none
	return pair.trust
}

// Trust is that of the Secrets that are made and that pods of the group have; empty if there
// is none.
func (s Secrets) Trust() string {
	for _, one := range []Secret{s.Member, s.MySQL, s.Backend} {
		if one.Made {
			return one.Trust()
		}
	}
	return ""
}

// findDifferentCA says which Secret has other authorities than the first of those that are made: they
// are written one after the other, and members that started in between would do so twice.
func (s Secrets) findDifferentCA() (Secret, error) {
	first := Secret{}
	for _, one := range s.all() {
		switch {
		case !one.Made:
		case first.Name == "":
			first = one
		case one.Trust() != first.Trust():
			return one, fmt.Errorf("keys %s and %s: other authorities than those of Secret %s", v1alpha1.TLSKeyCA, v1alpha1.TLSKeyCert, first.Name)
		}
	}
	return Secret{}, nil
}

func hashParts(parts ...[]byte) string {
	sum := sha256.New()
	for _, part := range parts {
		one := sha256.Sum256(part)
		_, _ = sum.Write(one[:]) // which never fails
	}
	return hex.EncodeToString(sum.Sum(nil)[:digestBytes])
}
