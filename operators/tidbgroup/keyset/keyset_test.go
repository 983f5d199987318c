package keyset_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"testing"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/tidbgroup/keyset"
	"github.com/tidb-groups/tidb-groups/shared/certificate"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

func group(token *v1alpha1.AuthToken) *v1alpha1.TiDBGroup {
	g := &v1alpha1.TiDBGroup{}
	g.Namespace, g.Name, g.Spec.AuthToken = "shop", "basic-tidb", token
	return g
}

// set is a key set with a key of a kid and an algorithm.
func set(t *testing.T, kid, alg string) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	out, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: kid, Algorithm: alg}}})
	require.NoError(t, err)
	return out
}

func TestDB13TheSecretIsThatOfTiDBOperator(t *testing.T) {
	assert.Empty(t, keyset.SecretName(group(nil)))
	assert.Equal(t, "basic-tidb-auth-token-jwks-secret", keyset.SecretName(group(&v1alpha1.AuthToken{})))
	assert.Equal(t, "mine", keyset.SecretName(group(&v1alpha1.AuthToken{SecretName: "mine"})))
}

func TestDB13WhatIsWrongWithTheKeysIsNamed(t *testing.T) {
	with := func(text string) certificate.Secret {
		return certificate.Secret{Name: "mine", Data: map[string][]byte{keyset.Key: []byte(text)}}
	}
	for name, c := range map[string]struct {
		secret certificate.Secret
		says   string
	}{
		"all is well":  {with(string(set(t, "a", "ES256"))), ""},
		"no Secret":    {certificate.Secret{Name: "mine"}, "Secret mine, which spec.authToken needs, does not exist: create it: kubectl -n shop create secret generic mine --from-file=tidb_auth_token_jwks.json=FILE"},
		"no right":     {certificate.Secret{Name: "mine", Refused: true}, "the operators may not read Secrets: install them with components/tls"},
		"no such key":  {certificate.Secret{Name: "mine", Data: map[string][]byte{"other": nil}}, "key tidb_auth_token_jwks.json: it is missing: mend it: kubectl -n shop edit secret mine"},
		"no JSON":      {with("keys"), "it is no JSON web key set with a key in it"},
		"no keys":      {with(`{"keys": []}`), "it is no JSON web key set with a key in it"},
		"half a key":   {with(`{"keys": [{"kty": "EC", "crv": "P-256", "x": "AA", "kid": "a", "alg": "ES256"}]}`), "it is no JSON web key set with a key in it"},
		"no kid":       {with(string(set(t, "", "ES256"))), "keys[0] has no kid"},
		"no algorithm": {with(string(set(t, "a", ""))), "keys[0] has no alg"},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, step.Done(), keyset.Judge(group(nil), c.secret), "it is not used")
			o := keyset.Judge(group(&v1alpha1.AuthToken{SecretName: "mine"}), c.secret)
			if c.says == "" {
				assert.Equal(t, step.Done(), o)
				return
			}
			assert.Equal(t, step.KindStall, o.Kind)
			assert.Contains(t, o.Message, c.says)
			assert.Positive(t, o.After, "nothing tells that it was mended")
		})
	}
}
