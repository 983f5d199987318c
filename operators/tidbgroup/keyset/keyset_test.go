package keyset_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

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

func TestDB13InvalidKeysAreNamed(t *testing.T) {
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
		"no such key":  {certificate.Secret{Name: "mine", Data: map[string][]byte{"other": nil}}, "key tidb_auth_token_jwks.json: it is missing: fix it: kubectl -n shop edit secret mine"},
		"no JSON":      {with("keys"), "not a JSON web key set with a key"},
		"no keys":      {with(`{"keys": []}`), "not a JSON web key set with a key"},
		"half a key":   {with(`{"keys": [{"kty": "EC", "crv": "P-256", "x": "AA", "kid": "a", "alg": "ES256"}]}`), "not a JSON web key set with a key"},
		"no kid":       {with(string(set(t, "", "ES256"))), "keys[0] has no kid"},
		"no algorithm": {with(string(set(t, "a", ""))), "keys[0] has no alg"},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, step.Done(), keyset.Judge(group(nil), keyset.Secrets{Users: c.secret}), "it is not used")
			o := keyset.Judge(group(&v1alpha1.AuthToken{SecretName: "mine"}), keyset.Secrets{Users: c.secret})
			if c.says == "" {
				assert.Equal(t, step.Done(), o)
				return
			}
			assert.Equal(t, step.KindStall, o.Kind)
			assert.Contains(t, o.Message, c.says)
			assert.Positive(t, o.After, "nothing tells that it was fixed")
		})
	}
}

// signer is a key of a sort.
func signer(t *testing.T, sort string) crypto.Signer {
	t.Helper()
	var key crypto.Signer
	var err error
	switch sort {
	case "RSA":
		key, err = rsa.GenerateKey(rand.Reader, 2048)
	case "ECDSA":
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	default:
		_, key, err = ed25519.GenerateKey(rand.Reader)
	}
	require.NoError(t, err)
	return key
}

// signedBy is the Secret of a key whose certificate another one has signed.
func signedBy(t *testing.T, key, by crypto.Signer) map[string][]byte {
	t.Helper()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Unix(1<<32, 0)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), by)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	return map[string][]byte{
		"tls.crt": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), "tls.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	}
}

// What TiDB does with each is held by TestDB13ARealTiDBSignsNoSessionsWithOtherKeys.
func TestDB13AKeyThatSignsNoSessionsIsNamed(t *testing.T) {
	rsaKey, ecKey, edKey := signer(t, "RSA"), signer(t, "ECDSA"), signer(t, "Ed25519")
	made, err := keyset.NewSigning(time.Now())
	require.NoError(t, err)
	another := signedBy(t, rsaKey, rsaKey)
	another["tls.key"] = made["tls.key"]
	for name, c := range map[string]struct {
		data map[string][]byte
		says string
	}{
		"made":               {made, ""},
		"RSA":                {signedBy(t, rsaKey, rsaKey), ""},
		"Ed25519":            {signedBy(t, edKey, edKey), ""},
		"ECDSA":              {signedBy(t, ecKey, ecKey), "Secret mine, which spec.sessionToken needs, key tls.key: it is an ECDSA key"},
		"RSA under ECDSA":    {signedBy(t, rsaKey, ecKey), "key tls.crt: a key of another type has signed it"},
		"Ed25519 under RSA":  {signedBy(t, edKey, rsaKey), "key tls.crt: a key of another type has signed it"},
		"the key of another": {another, "key tls.crt: tls: private key"},
		"no key":             {map[string][]byte{"tls.crt": made["tls.crt"]}, "key tls.key: it is missing: fix it: kubectl -n shop edit secret mine"},
		"there is no Secret": {nil, "Secret mine, which spec.sessionToken needs, does not exist: create it: kubectl -n shop create secret generic mine --from-file=tls.crt=FILE --from-file=tls.key=FILE"},
	} {
		t.Run(name, func(t *testing.T) {
			g := group(nil)
			assert.Equal(t, step.Done(), keyset.Judge(g, keyset.Secrets{Sessions: certificate.Secret{Name: "mine", Data: c.data}}), "it is not used")
			g.Spec.SessionToken = &v1alpha1.SessionToken{SecretName: "mine"}
			o := keyset.Judge(g, keyset.Secrets{Sessions: certificate.Secret{Name: "mine", Data: c.data}})
			if c.says == "" {
				assert.Equal(t, step.Done(), o)
				return
			}
			assert.Equal(t, step.KindStall, o.Kind)
			assert.Contains(t, o.Message, c.says)
			assert.Positive(t, o.After, "nothing tells that it was fixed")
		})
	}
}
