package keyset

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/go-jose/go-jose/v4"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/certificate"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// Where the servers find the keys, and how often they read them again. TiDB also does when a
// token has no key that it knows, so that the interval is for keys that are removed.
const (
	Dir     = "/var/lib/tidb-auth-token"
	Key     = "tidb_auth_token_jwks.json"
	Path    = Dir + "/" + Key
	Refresh = "1m0s"
)

// Secrets are those with keys of tokens; they have no names where a group takes or signs none.
type Secrets struct {
	// Users have tokens of these keys, Sessions are moved by tokens of this one.
	Users, Sessions certificate.Secret
}

// IsNeeded reports whether a group has keys of tokens.
func IsNeeded(g *v1alpha1.TiDBGroup) bool {
	return g.Spec.AuthToken != nil || g.Spec.SessionToken != nil
}

// SecretName is the Secret with the keys of users' tokens; empty if the group takes none. The
// default is TiDB Operator's.
func SecretName(g *v1alpha1.TiDBGroup) string {
	if g.Spec.AuthToken == nil {
		return ""
	}
	return cmp.Or(g.Spec.AuthToken.SecretName, g.Name+"-auth-token-jwks-secret")
}

// Judge says what a user has to fix of the keys; Done if nothing.
func Judge(g *v1alpha1.TiDBGroup, s Secrets) step.Outcome {
	out := step.Done()
	if g.Spec.AuthToken != nil {
		out = judgeSecret(g, s.Users, need{
			field: "spec.authToken", check: func(data map[string][]byte) (string, error) { return Key, checkKeySet(data[Key]) },
			missing: fmt.Sprintf("Secret %s, which spec.authToken needs, does not exist: create it: kubectl -n %s create secret generic %s --from-file=%s=FILE", s.Users.Name, g.Namespace, s.Users.Name, Key),
		})
	}
	if g.Spec.SessionToken != nil && !NeedsSigningSecret(g, s.Sessions) {
		out = step.Worst(out, judgeSecret(g, s.Sessions, need{
			field: "spec.sessionToken", check: checkSigning,
			missing: fmt.Sprintf("Secret %s, which spec.sessionToken needs, does not exist: create it: kubectl -n %s create secret generic %s --from-file=tls.crt=FILE --from-file=tls.key=FILE", s.Sessions.Name, g.Namespace, s.Sessions.Name),
		}))
	}
	return out
}

// need is what a field wants of a Secret.
type need struct {
	field string
	// check says which key of the Secret is wrong, and why.
	check func(map[string][]byte) (key string, err error)
	// missing says that there is no Secret, and how to make it.
	missing string
}

// judgeSecret says what a user has to fix of a Secret; Done if nothing.
func judgeSecret(g *v1alpha1.TiDBGroup, secret certificate.Secret, by need) step.Outcome {
	message := ""
	switch {
	case secret.Refused:
		message = fmt.Sprintf("Secret %s, which %s needs: the operators may not read Secrets: install them with components/tls (docs/tasks/tokens.md)", secret.Name, by.field)
	case secret.Data == nil:
		message = by.missing
	default:
		key, err := by.check(secret.Data)
		if err == nil {
			return step.Done()
		}
		message = fmt.Sprintf("Secret %s, which %s needs, key %s: %v: fix it: kubectl -n %s edit secret %s", secret.Name, by.field, key, err, g.Namespace, secret.Name)
	}
	o := step.Stall(v1alpha1.ReasonMissingReference, message)
	o.After = certificate.LookSoon // no watch reports Secrets
	return o
}

var (
	errMissing = errors.New("it is missing")
	errNoSet   = errors.New("not a JSON web key set with a key")
)

// checkKeySet says why TiDB would know no token by a key set, or by one of its keys; nil if it
// would. TiDB finds a key by kid, and takes its alg alone.
func checkKeySet(text []byte) error {
	if len(text) == 0 {
		return errMissing
	}
	var set jose.JSONWebKeySet
	if json.Unmarshal(text, &set) != nil || len(set.Keys) == 0 {
		return errNoSet
	}
	for n, key := range set.Keys {
		switch {
		case key.KeyID == "":
			return fmt.Errorf("keys[%d] has no kid, which TiDB needs to find it", n)
		case key.Algorithm == "":
			return fmt.Errorf("keys[%d] has no alg, without which TiDB accepts no token signed by it", n)
		}
	}
	return nil
}
