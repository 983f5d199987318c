package certificate

import (
	"cmp"
	"fmt"
	"time"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

const (
	// lastPart of a certificate's life is when its end is reported. What renews by itself has
	// done so by then: cert-manager does when a third is left.
	lastPart = 10
	// longestNotice bounds it: a CA may live for decades.
	longestNotice = 30 * 24 * time.Hour
)

// DescribeExpiry reports the certificate that ends first, if a user has to renew it by now; empty
// if none has to be. Secrets that are no good are for Judge.
func (s Secrets) DescribeExpiry(g v1alpha1.Group, pd *v1alpha1.PDGroup, now time.Time) string {
	told, first := "", time.Time{}
	for _, one := range s.all() {
		pair, err := one.Pair()
		if err != nil {
			continue
		}
		c := pair.firstToExpire(now)
		notice := min(c.NotAfter.Sub(c.NotBefore)/lastPart, longestNotice)
		if c.NotAfter.Sub(now) > notice || told != "" && !c.NotAfter.Before(first) {
			continue
		}
		first = c.NotAfter
		edit := fmt.Sprintf("kubectl -n %s edit secret %s", g.GetNamespace(), one.Name)
		if one.Made {
			told = fmt.Sprintf("Secret %s, key %s: it or its CA expires at %s, and it was not renewed: %s", one.Name, v1alpha1.TLSKeyCert, formatTime(first), cmp.Or(one.Said, describeIssuer(g, pd, one)))
			continue
		}
		if c == pair.leaf {
			told = fmt.Sprintf("Secret %s, key %s: it expires at %s: renew it: %s", one.Name, v1alpha1.TLSKeyCert, formatTime(first), edit)
			continue
		}
		told = fmt.Sprintf("Secret %s, key %s: its CA expires at %s: renew the CA with the same key, so that its certificates stay valid: %s", one.Name, v1alpha1.TLSKeyCert, formatTime(first), edit)
	}
	return told
}

// ReviewDelay is how soon a group at rest is to be looked at again, whose certificates these are.
func ReviewDelay(known []v1alpha1.CertificateStatus, now time.Time) time.Duration {
	for _, one := range known {
		if one.NotAfter.Sub(now) < endsSoon {
			return LookAgain
		}
	}
	return ReviewAgain
}
