package conformance_test

import (
	"bufio"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/operators/tidbgroup/keyset"
	"github.com/tidb-groups/tidb-groups/shared/testkit/pki"
)

// The keys of the configuration are those of the golden rendering of a TiDBGroup with
// spec.sessionToken, and the Secret is as the operator makes it.
func TestDB13ARealTiDBMovesSessionsByTokensThatItHasSigned(t *testing.T) {
	onlyReal(t)
	t.Parallel()
	made, err := keyset.NewSigning(time.Now())
	require.NoError(t, err)
	one, two := signsSessions(t, made), signsSessions(t, made)
	none := newTiDB(t, t.TempDir())
	none.run(t, "")
	for _, server := range []realTiDB{one, two, none} {
		said(t, server, "CREATE USER 'ann' IDENTIFIED BY 'secret'")
	}

	states, token := sessionOf(t, one)
	require.NoError(t, takenBy(t, two, "ann", token), "without her password")
	require.NoError(t, takenBy(t, two, "ann", token, states))
	require.Error(t, takenBy(t, two, "root", token), "the token of another user")
	require.Error(t, takenBy(t, two, "ann", later(t, token)), "its time is signed, too")
	require.Error(t, takenBy(t, none, "ann", token), "a server without the key")
	_, _, err = shown(t, none)
	require.ErrorContains(t, err, "no certificate or key file to sign the data", "nor can that move one away")
}

// Why keyset.Judge refuses such keys.
func TestDB13ARealTiDBSignsNoSessionsWithOtherKeys(t *testing.T) {
	onlyReal(t)
	t.Parallel()
	ca, err := pki.New(time.Now())
	require.NoError(t, err)
	data, err := ca.Secret(pki.Leaf{})
	require.NoError(t, err)
	server := signsSessions(t, data)
	said(t, server, "CREATE USER 'ann' IDENTIFIED BY 'secret'")
	_, token := sessionOf(t, server)
	require.NoError(t, takenBy(t, server, "ann", later(t, token)), "of ECDSA: the time of a token can be changed")

	server = signsSessions(t, rsaUnder(t, data))
	said(t, server, "CREATE USER 'ann' IDENTIFIED BY 'secret'")
	_, _, err = shown(t, server)
	require.ErrorContains(t, err, "not supported private key type", "RSA that ECDSA has signed")
}

// signsSessions starts a TiDB that signs tokens of sessions with what a Secret holds.
func signsSessions(t *testing.T, secret map[string][]byte) realTiDB {
	t.Helper()
	dir := t.TempDir()
	for key, content := range secret {
		require.NoError(t, os.WriteFile(filepath.Join(dir, key), content, 0o600))
	}
	server := newTiDB(t, dir)
	server.run(t, fmt.Sprintf("[security]\nsession-token-signing-cert = '%[1]s/tls.crt'\nsession-token-signing-key = '%[1]s/tls.key'\n", dir))
	return server
}

// rsaUnder is a key of RSA whose certificate that of a Secret has signed.
func rsaUnder(t *testing.T, secret map[string][]byte) map[string][]byte {
	t.Helper()
	decode := func(key string) []byte { block, _ := pem.Decode(secret[key]); return block.Bytes }
	parent, err := x509.ParseCertificate(decode("tls.crt"))
	require.NoError(t, err)
	signer, err := x509.ParsePKCS8PrivateKey(decode("tls.key"))
	require.NoError(t, err)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "rsa"}, NotAfter: time.Now().Add(time.Hour)}, parent, key.Public(), signer)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	return map[string][]byte{
		"tls.crt": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), "tls.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	}
}

// opened are connections of a user to a server.
func opened(t *testing.T, server realTiDB, user, password string) *sql.DB {
	t.Helper()
	config := mysql.NewConfig()
	config.User, config.Passwd, config.Net, config.Addr, config.Logger = user, password, "tcp", net.JoinHostPort(server.host, server.port), &mysql.NopLogger{}
	db, err := sql.Open("mysql", config.FormatDSN())
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// said has root run a statement, as soon as the server is there.
func said(t *testing.T, server realTiDB, statement string) {
	t.Helper()
	db := opened(t, server, "root", "")
	require.Eventually(t, func() bool { return db.PingContext(t.Context()) == nil }, 2*timeout, 100*time.Millisecond)
	_, err := db.ExecContext(t.Context(), statement)
	require.NoError(t, err)
}

// shown is what TiProxy asks a server for before it moves a session of ann's.
func shown(t *testing.T, server realTiDB) (states string, token []byte, err error) {
	t.Helper()
	err = opened(t, server, "ann", "secret").QueryRowContext(t.Context(), "SHOW SESSION_STATES").Scan(&states, &token)
	return states, token, err
}

func sessionOf(t *testing.T, server realTiDB) (states string, token []byte) {
	t.Helper()
	states, token, err := shown(t, server)
	require.NoError(t, err)
	return states, token
}

// later is a token that says to have been signed later than it was.
func later(t *testing.T, token []byte) []byte {
	t.Helper()
	var fields map[string]any
	require.NoError(t, json.Unmarshal(token, &fields))
	for _, key := range []string{"sign-time", "expire-time"} {
		at, err := time.Parse(time.RFC3339Nano, fields[key].(string))
		require.NoError(t, err)
		fields[key] = at.Add(time.Second)
	}
	out, err := json.Marshal(fields)
	require.NoError(t, err)
	return out
}

// takenBy signs a user in to a server by a token, as TiProxy does and no driver, and gives the
// session the states of another one.
func takenBy(t *testing.T, server realTiDB, user string, token []byte, states ...string) error {
	t.Helper()
	conn, err := (&net.Dialer{Timeout: timeout}).DialContext(t.Context(), "tcp", net.JoinHostPort(server.host, server.port))
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	require.NoError(t, conn.SetDeadline(time.Now().Add(timeout)))
	in := bufio.NewReader(conn)
	_, err = packet(in)
	require.NoError(t, err, "the greeting")

	const longPassword, protocol41, secureConnection, pluginAuth, lengthEncoded = 1, 1 << 9, 1 << 15, 1 << 19, 1 << 21
	answer := binary.LittleEndian.AppendUint32(nil, longPassword|protocol41|secureConnection|pluginAuth|lengthEncoded)
	answer = binary.LittleEndian.AppendUint32(answer, 1<<24)
	answer = append(append(answer, 45), make([]byte, 23)...) // utf8mb4
	answer = append(append(answer, user...), 0, 0xfc)
	answer = append(binary.LittleEndian.AppendUint16(answer, uint16(len(token))), token...) //nolint:gosec // a few hundred bytes
	answer = append(append(answer, "tidb_session_token"...), 0)
	if err := exchange(conn, in, 1, answer); err != nil {
		return err
	}
	for _, one := range states {
		const query = 3
		quoted, err := json.Marshal(one)
		require.NoError(t, err)
		if err := exchange(conn, in, 0, append([]byte{query}, "SET SESSION_STATES "+string(quoted)...)); err != nil {
			return err
		}
	}
	return nil
}

// packet is one of MySQL's protocol.
func packet(in io.Reader) ([]byte, error) {
	head := make([]byte, 4)
	if _, err := io.ReadFull(in, head); err != nil {
		return nil, err
	}
	body := make([]byte, int(head[0])|int(head[1])<<8|int(head[2])<<16)
	_, err := io.ReadFull(in, body)
	return body, err
}

// exchange sends a packet, and returns what the server has against it.
func exchange(out io.Writer, in io.Reader, number byte, body []byte) error {
	n := len(body)
	if _, err := out.Write(append([]byte{byte(n), byte(n >> 8), byte(n >> 16), number}, body...)); err != nil {
		return err
	}
	answer, err := packet(in)
	if err == nil && (len(answer) == 0 || answer[0] != 0) {
		err = errors.New(string(answer))
	}
	return err
}
