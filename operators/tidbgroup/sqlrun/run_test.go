package sqlrun

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/shared/testkit/loopback"
)

// mounted lays a Secret out as the kubelet does.
func mounted(t *testing.T, data map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "..2026_01_02"), 0o700))
	require.NoError(t, os.Symlink("..2026_01_02", filepath.Join(dir, "..data")))
	for key, value := range data {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "..data", key), []byte(value), 0o600))
		require.NoError(t, os.Symlink(filepath.Join("..data", key), filepath.Join(dir, key)))
	}
	return dir
}

func TestDB10InvalidUsersAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		taken  string
		secret map[string]string
		says   string
	}{
		"no password":              {"", map[string]string{"app": ""}, "key app: the password is empty"},
		"a password of line ends":  {"", map[string]string{"app": "\n\n"}, "key app: the password is empty"},
		"a file instead of a word": {"", map[string]string{"tls.key": "-----BEGIN\nsecret\n"}, "key tls.key: the password has a second line"},
		"a file from Windows":      {"", map[string]string{"app": "secret\r\n"}, "key app: the password has a carriage return"},
		"far too long a word":      {"", map[string]string{"app": strings.Repeat("s", 1025)}, "key app: the password is longer than 1024 bytes"},
		"too long a name":          {"", map[string]string{strings.Repeat("n", 33): "secret"}, "a user's name may have 32 characters"},
		"two passwords for root":   {"root", map[string]string{"root": "secret"}, "key root: its password is generated, by spec.initialization.rootPassword: remove the key"},
	} {
		t.Run(name, func(t *testing.T) {
			r := Run{Users: mounted(t, c.secret), Of: "Secret people", Taken: c.taken, Within: time.Minute}
			_, err := r.Do(t.Context())
			require.ErrorContains(t, err, "Secret people: ")
			require.ErrorContains(t, err, c.says)
			assert.NotContains(t, err.Error(), "secret", "no password is told")
		})
	}
}

func TestDB10UsersAreMadeOrGetTheirPasswords(t *testing.T) {
	people, err := readUsers(mounted(t, map[string]string{"app": `it's \` + "\n", "root": "x"}), "")
	require.NoError(t, err)
	require.Equal(t, []user{{"app", `it's \`}, {"root", "x"}}, people)
	assert.Equal(t, `CREATE USER 'app'@'10.1.%' IDENTIFIED BY 'it\'s \\'`, people[0].passwordStatement("10.1.%", false))
	assert.Equal(t, `ALTER USER 'app'@'10.1.%' IDENTIFIED BY 'it\'s \\'`, people[0].passwordStatement("10.1.%", true))
	assert.Equal(t, `ALTER USER 'root'@'%' IDENTIFIED BY 'x'`, people[1].passwordStatement("%", false), "a root that is made would have no privileges")
	assert.Equal(t, `SELECT COUNT(*) FROM mysql.user WHERE User = 'app' AND Host = '%'`, people[0].countStatement("%"))
}

// Files from Windows end with a carriage return; what else a password ends with is its own.
func TestDB10APasswordToConnectWithEndsBeforeTheEndOfItsLine(t *testing.T) {
	for text, want := range map[string]string{"a b": "a b", "a\n": "a", "a\r\n": "a", " a \r\n": " a ", "a\rb\n": "a\rb", "\r\n": ""} {
		r := Run{Password: filepath.Join(mounted(t, map[string]string{"p": text}), "p")}
		got, err := r.password()
		require.NoError(t, err)
		assert.Equal(t, want, got, "%q", text)
	}
}

func TestDB10AMissingServerOrFileIsWaitedForAndNamed(t *testing.T) {
	file := func(t *testing.T, text string) string {
		t.Helper()
		path := filepath.Join(t.TempDir(), "f")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	nowhere := filepath.Join(t.TempDir(), "nowhere")
	for name, c := range map[string]struct {
		run  Run
		says string
	}{
		"the SQL":            {Run{File: nowhere, Of: "key a of ConfigMap b"}, "key a of ConfigMap b is not there"},
		"the Secret":         {Run{Users: mounted(t, nil), Of: "Secret people"}, "Secret people is not there, or has no keys"},
		"the password":       {Run{File: file(t, "SELECT 1"), Of: "x", Password: nowhere, PasswordOf: "key a of Secret b"}, "key a of Secret b is not there"},
		"the server":         {Run{File: file(t, "SELECT 1"), Of: "x", Address: loopback.Address(t), User: "root"}, "as root: dial tcp"},
		"an optional secret": {Run{File: file(t, "SELECT 1"), Of: "x", Address: loopback.Address(t), User: "root", Password: nowhere}, "as root: dial tcp"},
	} {
		t.Run(name, func(t *testing.T) {
			c.run.Within, c.run.Pause = time.Minute, time.Millisecond
			ctx, stop := context.WithCancelCause(t.Context())
			defer stop(nil)
			said := 0
			c.run.Say = func(string, ...any) {
				if said++; said == 3 {
					stop(errors.New("told to stop"))
				}
			}
			_, err := c.run.Do(ctx)
			require.ErrorContains(t, err, "told to stop: ")
			require.ErrorContains(t, err, c.says)
			assert.GreaterOrEqual(t, said, 3, "more than one attempt")
		})
	}
	_, err := Run{File: nowhere, Of: "key a of ConfigMap b", Within: 20 * time.Millisecond, Pause: time.Millisecond}.Do(t.Context())
	require.EqualError(t, err, "not done within 20ms: key a of ConfigMap b is not there")

	begin := time.Now()
	_, err = Run{File: file(t, "-- nothing;"), Of: "key a of ConfigMap b", Within: 2 * time.Minute}.Do(t.Context())
	require.EqualError(t, err, "key a of ConfigMap b has no statement")
	assert.Less(t, time.Since(begin), time.Minute, "nothing helps against that")
}

func TestDB10NoMessageShowsASecret(t *testing.T) {
	syntax := fmt.Errorf("exec: %w", &mysql.MySQLError{Number: 1064, SQLState: [5]byte{'4', '2', '0', '0', '0'}, Message: "You have an error near 'BY \n \"secret\"'"})
	assert.Equal(t, `error 1064 (42000): You have an error near 'BY "secret"'`, describeError(syntax, false))
	assert.Equal(t, "error 1064 (42000): syntax error", describeError(syntax, true))
	assert.Equal(t, "error 9999", describeError(&mysql.MySQLError{Number: 9999, Message: "secret"}, true), "a number that means nothing to us")
	assert.Equal(t, "an error of the client", describeError(errors.New("local file 'secret' is not registered"), true))
	assert.Equal(t, "dial tcp: secret", describeError(&net.OpError{Op: "dial", Net: "tcp", Err: errors.New("secret")}, true), "what the network says is not of the SQL")
	for number, words := range errorMeanings() {
		assert.NotEmpty(t, words, number)
	}
}

func TestARefusedStatementIsNotTriedAgain(t *testing.T) {
	assert.True(t, isRefusal(fmt.Errorf("x: %w", &mysql.MySQLError{Number: 1045})))
	assert.False(t, isRefusal(&mysql.MySQLError{Number: 1040}), "too many connections now")
	assert.False(t, isRefusal(&mysql.MySQLError{Number: 1053}), "this server goes, another one is there")
	assert.False(t, isRefusal(mysql.ErrInvalidConn))
	assert.False(t, isRefusal(nil))
}

func TestParse(t *testing.T) {
	good := []string{"--address=a:4000", "--user=root", "--of=x", "--result=/r", "--within=1m"}
	r, err := Parse(append(good, "--file=f", "--secret"))
	require.NoError(t, err)
	assert.Equal(t, Run{Address: "a:4000", User: "root", Of: "x", Result: "/r", Within: time.Minute, File: "f", Secret: true, Host: "%", Pause: time.Second}, r)
	for says, args := range map[string][]string{
		"one of --file and --users": good,
		"one of --file and --user":  append(good, "--file=f", "--users=u"),
		"unexpected argument":       append(good, "--file=f", "more"),
		"want --address":            {"--file=f"},
		"read flags":                {"--what"},
	} {
		_, err := Parse(args)
		assert.ErrorContains(t, err, says)
	}
}

// What is done about users may be begun again: stores that are away for a moment, as in a roll, end
// nothing. A statement that got such an answer may have been carried out.
func TestDB10UsersWaitForStoresThatAreAway(t *testing.T) {
	for number, ends := range map[uint16]bool{9001: false, 9002: false, 9003: false, 9005: false, 8028: false, 1203: false, 1045: true, 1396: true, 1819: true} {
		final := failure("")
		err := Run{Of: "Secret people"}.userError("key app", fmt.Errorf("exec: %w", &mysql.MySQLError{Number: number}))
		assert.Equal(t, ends, errors.As(err, &final), number)
		assert.ErrorContains(t, err, fmt.Sprintf("key app: error %d", number))
	}
}
