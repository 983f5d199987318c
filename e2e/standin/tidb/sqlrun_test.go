package tidb

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/e2e/standin/process/pdserver"
	"github.com/tidb-groups/tidb-groups/operators/tidbgroup/sqlrun"
)

// runsSQL returns a run of SQL against a server, as root without a password.
func (r *running) runsSQL() sqlrun.Run {
	return sqlrun.Run{Address: r.address(), User: "root", Of: "the test", Host: "%", Within: time.Minute, Pause: 10 * time.Millisecond}
}

// secret writes the keys of a Secret into a folder.
func secret(t *testing.T, keys map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for key, value := range keys {
		require.NoError(t, os.WriteFile(filepath.Join(dir, key), []byte(value), 0o600))
	}
	return dir
}

func TestDB10UsersOfARunningDatabaseAreMadeAndGetOtherPasswords(t *testing.T) {
	r := start(t, pdserver.StartWithStore(t)).ready(t)
	passwords := map[string]string{
		"plain": "plain", "quotes": `''"'\'`, "slashes": `\\\n\%\_\`, "sql": "x'; DROP USER root; -- ", "wide": "密码 é 🔑", "blank": "  ", "root": `it's \ "$HOME"`,
	}
	for _, suffix := range []string{"", " and another one"} {
		for user := range passwords {
			passwords[user] += suffix
		}
		run := r.runsSQL()
		run.Users, run.Secret = secret(t, passwords), true
		if suffix != "" {
			run.Password = filepath.Join(secret(t, map[string]string{"p": strings.TrimSuffix(passwords["root"], suffix) + "\n"}), "p")
		}
		done, err := run.Do(t.Context())
		require.NoError(t, err)
		assert.Equal(t, len(passwords), done)
		for user, password := range passwords {
			require.NoError(t, r.as(t, user, password).PingContext(t.Context()), user)
			assert.Error(t, r.as(t, user, "").PingContext(t.Context()), user)
			if suffix != "" {
				assert.Error(t, r.as(t, user, strings.TrimSuffix(password, suffix)).PingContext(t.Context()), "the old password of %s", user)
			}
		}
	}

	wrong := r.runsSQL()
	wrong.Users = secret(t, map[string]string{"late": "x"})
	_, err := wrong.Do(t.Context())
	require.ErrorContains(t, err, "connect as root: error 1045")
	assert.Error(t, r.as(t, "late", "x").PingContext(t.Context()))
}

func TestDB10SQLRunsInOneSessionAndTheStatementThatFailsIsNamed(t *testing.T) {
	r := start(t, pdserver.StartWithStore(t)).ready(t)
	const text = "CREATE DATABASE shop; -- first;\nUSE shop;\nCREATE TABLE orders (id INT PRIMARY KEY, note VARCHAR(20));\nINSERT INTO orders VALUES (7, 'a;b');\n" +
		"INSERT INTO orders VALUES (8, nonsense('hunter2'));\nINSERT INTO orders VALUES (9, 'never');\n"
	for _, hidden := range []bool{false, true} {
		run := r.runsSQL()
		run.File, run.Secret = write(t, strings.ReplaceAll(text, "shop", map[bool]string{false: "shop", true: "hidden"}[hidden])), hidden
		var mu sync.Mutex
		var said []string
		run.Say = func(format string, _ ...any) { mu.Lock(); defer mu.Unlock(); said = append(said, format) }
		done, err := run.Do(t.Context())
		require.ErrorContains(t, err, "statement 5 of 6: error ")
		assert.Equal(t, 4, done)
		assert.Len(t, said, 4, "nothing was tried again")
		assert.Equal(t, !hidden, strings.Contains(err.Error(), "nonsense"), err)
		assert.NotContains(t, err.Error(), "hunter2")
	}
	var count int
	require.NoError(t, r.as(t, "root", "").QueryRowContext(t.Context(), "SELECT COUNT(*) FROM shop.orders WHERE id = 7 AND note = 'a;b'").Scan(&count))
	assert.Equal(t, 1, count)
	require.NoError(t, r.as(t, "root", "").QueryRowContext(t.Context(), "SELECT COUNT(*) FROM shop.orders").Scan(&count))
	assert.Equal(t, 1, count, "and nothing after the one that failed")
}

func TestDB10ASQLRunWaitsForTheServerAndForItsFile(t *testing.T) {
	r := start(t, pdserver.StartWithStore(t)).ready(t)
	run := r.runsSQL()
	run.File = filepath.Join(t.TempDir(), "run.sql")
	waited := make(chan struct{})
	var once sync.Once
	run.Say = func(string, ...any) { once.Do(func() { close(waited) }) }
	ended := make(chan error, 1)
	go func() {
		_, err := run.Do(t.Context())
		ended <- err
	}()
	<-waited
	require.NoError(t, os.Rename(write(t, "CREATE DATABASE late"), run.File)) // all of it at once, as the kubelet does
	require.NoError(t, <-ended)
	require.NoError(t, r.as(t, "root", "").QueryRowContext(t.Context(), "SELECT 1 FROM information_schema.schemata WHERE schema_name = 'late'").Scan(new(int)))
}
