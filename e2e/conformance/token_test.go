package conformance_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/operators/tidbgroup/keyset"
	"github.com/tidb-groups/tidb-groups/operators/tidbgroup/sqlrun"
)

// The keys are those of the golden rendering of a TiDBGroup with spec.authToken, but for where
// the file lies.
func TestDB13ARealTiDBKnowsUsersByTokens(t *testing.T) {
	onlyReal(t)
	t.Parallel()
	dir := t.TempDir()
	server, keys := newTiDB(t, dir), filepath.Join(dir, keyset.Key)
	one, two, other := signer(t, "one"), signer(t, "two"), signer(t, "one")
	publish(t, keys, one)
	server.run(t, fmt.Sprintf("[security]\nauth-token-jwks = '%s'\nauth-token-refresh-interval = '%s'\n", keys, "500ms"))
	statement := filepath.Join(dir, "run.sql")
	require.NoError(t, os.WriteFile(statement, []byte(`CREATE USER 'ann' IDENTIFIED WITH 'tidb_auth_token' REQUIRE TOKEN_ISSUER 'corp' ATTRIBUTE '{"email": "ann@corp.example"}'`), 0o600))
	job := sqlrun.Run{Address: net.JoinHostPort(server.host, server.port), User: "root", File: statement, Of: "a file", Within: 2 * timeout, Pause: time.Second}
	_, err := job.Do(t.Context())
	require.NoError(t, err, "what docs/tasks/tokens.md says")

	require.NoError(t, signIn(t, job.Address, token(t, one, "ann")))
	require.Error(t, signIn(t, job.Address, token(t, other, "ann")), "another key under the same name")
	require.Error(t, signIn(t, job.Address, token(t, one, "bob")), "the token of another user")
	require.Error(t, signIn(t, job.Address, token(t, two, "ann")), "it is not in the set yet")

	publish(t, keys, two)
	require.NoError(t, signIn(t, job.Address, token(t, two, "ann")), "TiDB reads the file when it knows no key")
	require.Eventually(t, func() bool { return signIn(t, job.Address, token(t, one, "ann")) != nil }, timeout, 100*time.Millisecond, "a key that was removed counts no more")

	// Why keyset.Judge wants them.
	for _, change := range []func(*jose.JSONWebKey){func(k *jose.JSONWebKey) { k.Algorithm = "" }, func(k *jose.JSONWebKey) { k.KeyID = "" }} {
		lacking := two
		change(&lacking)
		publish(t, keys, lacking)
		require.Eventually(t, func() bool { return signIn(t, job.Address, token(t, two, "ann")) != nil }, timeout, 100*time.Millisecond)
	}
}

// signer is a key that tokens are signed with.
func signer(t *testing.T, kid string) jose.JSONWebKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	return jose.JSONWebKey{Key: key, KeyID: kid, Algorithm: string(jose.ES256)}
}

// publish writes the public key of a signer into a file.
func publish(t *testing.T, path string, by jose.JSONWebKey) {
	t.Helper()
	text, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{by.Public()}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path+".new", text, 0o600))
	require.NoError(t, os.Rename(path+".new", path))
}

// token is one of a user.
func token(t *testing.T, by jose.JSONWebKey, user string) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: by}, nil)
	require.NoError(t, err)
	issued := time.Now().Add(-time.Second)
	out, err := jwt.Signed(signer).Claims(jwt.Claims{
		Subject: user, Issuer: "corp", IssuedAt: jwt.NewNumericDate(issued), Expiry: jwt.NewNumericDate(issued.Add(time.Hour)),
	}).Claims(map[string]any{"email": user + "@corp.example"}).Serialize()
	require.NoError(t, err)
	return out
}

// signIn signs ann in with a token.
func signIn(t *testing.T, address, token string) error {
	t.Helper()
	config := mysql.NewConfig()
	config.User, config.Passwd, config.Net, config.Addr, config.Logger = "ann", token, "tcp", address, &mysql.NopLogger{}
	config.AllowCleartextPasswords = true
	db, err := sql.Open("mysql", config.FormatDSN())
	require.NoError(t, err)
	defer func() { _ = db.Close() }()
	return db.PingContext(t.Context())
}
