package certificate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// settled is for how long after a change of a Secret members may still show what was in it
// before: kubelets bring it into pods within about a minute.
const settled = 2 * time.Minute

// connectingSecrets are the Secrets of those that connect to the members of a group, where it lets
// certain common names do so alone.
func (s Secrets) connectingSecrets(g v1alpha1.Group) []Secret {
	if len(v1alpha1.CommonNames(g)) == 0 {
		return nil
	}
	out := []Secret{s.Member}
	if len(v1alpha1.OthersCommonNames(g)) == 0 {
		return out
	}
	out = append(out, s.Client)
	for _, other := range s.Others {
		out = append(out, other.Member)
	}
	return out
}

// findRefusedCommonName says which certificate has a common name that members do not let connect: those of
// the group, or those of another one that its members connect to.
func (s Secrets) findRefusedCommonName(g v1alpha1.Group) (Secret, error) {
	for _, one := range s.connectingSecrets(g) {
		if err := refusedBy(g, one); err != nil {
			return one, err
		}
	}
	for _, other := range s.Others {
		if len(v1alpha1.OthersCommonNames(other.Group)) == 0 {
			continue
		}
		if err := refusedBy(other.Group, s.Member); err != nil {
			return s.Member, err
		}
	}
	return Secret{}, nil
}

// refusedBy says why the members of a group do not let a certificate connect; nil if they do.
// One that cannot be read connects nowhere.
func refusedBy(g v1alpha1.Group, secret Secret) error {
	allowed := v1alpha1.CommonNames(g)
	pair, err := secret.Pair()
	if err != nil || len(allowed) == 0 || slices.Contains(allowed, pair.leaf.Subject.CommonName) {
		return nil
	}
	return fmt.Errorf("key %s: its common name is %q, and %s %s lets connect only %s (spec.tls.allowedCommonNames)",
		v1alpha1.TLSKeyCert, pair.leaf.Subject.CommonName, g.GroupKind(), g.GetName(), strings.Join(allowed, ", "))
}

// RecentChange says which Secret has just changed, so that members may still show a certificate
// that new members of a group would not let connect, and for how long; 0 for none.
func (s Secrets) RecentChange(g v1alpha1.Group, now time.Time) (secret string, left time.Duration) {
	for _, one := range s.connectingSecrets(g) {
		if next := settled - now.Sub(one.Written); next > left {
			secret, left = one.Name, next
		}
	}
	return secret, left
}
