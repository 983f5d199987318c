package tidb

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	"github.com/pingcap/kvproto/pkg/metapb"
	"github.com/pingcap/kvproto/pkg/pdpb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/e2e/standin/process"
	"github.com/tidb-groups/tidb-groups/e2e/standin/process/pdserver"
	operatorpd "github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/pdclient"
	"github.com/tidb-groups/tidb-groups/shared/testkit/loopback"
)

const timeout = time.Minute

func TestMain(m *testing.M) {
	QuietLibraries(io.Discard)
	os.Exit(m.Run())
}

// running is one TiDB of a test.
type running struct {
	cfg  *Config
	stop context.CancelFunc
	done chan error
}

func (r *running) url(path string) string {
	return "http://" + net.JoinHostPort(r.cfg.StatusHost, strconv.Itoa(r.cfg.StatusPort)) + path
}

func (r *running) address() string {
	return net.JoinHostPort(r.cfg.Host, strconv.Itoa(r.cfg.Port))
}

func (r *running) end(t *testing.T) {
	t.Helper()
	r.stop()
	select {
	case err := <-r.done:
		require.NoError(t, err)
	case <-time.After(timeout):
		require.Fail(t, "the server did not end")
	}
}

// start runs a TiDB; more are further arguments.
func start(t *testing.T, pd *pdserver.PD, more ...string) *running {
	t.Helper()
	host := loopback.Host(t)
	args := append([]string{
		"--store=tikv", "--path=" + pd.Addr, "--host=" + host, "--status-host=" + host, "--advertise-address=" + host,
	}, more...)
	cfg, err := ParseArgs(args, noEnv, io.Discard)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	r := &running{cfg: cfg, stop: cancel, done: make(chan error, 1)}
	go func() { r.done <- Run(ctx, slog.New(slog.DiscardHandler), cfg) }()
	return r
}

func (r *running) ready(t *testing.T) *running {
	t.Helper()
	require.Eventually(t, func() bool { code, _, _ := call(t, http.MethodGet, r.url("/status"), ""); return code == 200 }, timeout, 10*time.Millisecond)
	return r
}

func (r *running) db(t *testing.T, account, options string) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", fmt.Sprintf("%s@tcp(%s)/test%s", account, r.address(), options))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

func call(t *testing.T, method, url, body string) (int, http.Header, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewBufferString(body))
	require.NoError(t, err)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, nil
	}
	defer func() { require.NoError(t, res.Body.Close()) }()
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res.StatusCode, res.Header, text
}

// shape replaces every value by the name of its type, and drops what a map of
// servers calls them, so that two answers can be compared for their form.
func shape(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, value := range v {
			if key == "all_servers_info" {
				if servers, ok := value.(map[string]any); ok {
					for _, one := range servers {
						value = map[string]any{"each": one}
					}
				}
			}
			if key == "labels" || key == "Deprecated" {
				value = "labels"
			}
			out[key] = shape(value)
		}
		return out
	case []any:
		out := []any{}
		for _, one := range v {
			out = append(out, shape(one))
		}
		return out
	case nil:
		return "null"
	default:
		return fmt.Sprintf("%T", v)
	}
}

func TestTheStatusPortAnswersAsTheRecordedTiDB(t *testing.T) {
	pd := pdserver.StartWithStore(t)
	r := start(t, pd).ready(t)
	second := start(t, pd).ready(t)
	files, err := filepath.Glob("testdata/*.json")
	require.NoError(t, err)
	require.Len(t, files, 9)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			var recorded struct {
				Request struct {
					Method, URL string
					Body        *string
				}
				Response struct {
					Status  int
					Headers map[string]string
					Raw     *string `json:"body_raw"`
					Body    any
				}
			}
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			require.NoError(t, json.Unmarshal(text, &recorded))
			path := recorded.Request.URL[len("http://127.0.0.1:27451"):]
			body := ""
			if recorded.Request.Body != nil {
				body = *recorded.Request.Body
			}
			if path == "/info/all" {
				require.Eventually(t, func() bool {
					_, _, text := call(t, http.MethodGet, r.url(path), "")
					return bytes.Contains(text, []byte(`"servers_num": 2`))
				}, timeout, 10*time.Millisecond)
			}
			code, headers, answer := call(t, recorded.Request.Method, r.url(path), body)
			assert.Equal(t, recorded.Response.Status, code)
			assert.Equal(t, recorded.Response.Headers["Content-Type"], headers.Get("Content-Type"))
			if recorded.Response.Raw != nil {
				assert.Equal(t, *recorded.Response.Raw, string(answer))
				return
			}
			var got any
			require.NoError(t, json.Unmarshal(answer, &got))
			if path == "/schema" {
				assert.Equal(t, recorded.Response.Body, got)
			}
			assert.Equal(t, shape(recorded.Response.Body), shape(got))
		})
	}
	_, _, text := call(t, http.MethodGet, second.url("/info/all"), "")
	assert.Contains(t, string(text), `"zone": "z1"`, "labels that were posted are seen by every server")
}

func TestTheServerSpeaksMySQL(t *testing.T) {
	r := start(t, pdserver.StartWithStore(t)).ready(t)
	db := r.db(t, "root", "")
	var one int
	require.NoError(t, db.QueryRowContext(t.Context(), "SELECT 1").Scan(&one))
	assert.Equal(t, 1, one)
	var version, long, variable string
	require.NoError(t, db.QueryRowContext(t.Context(), "SELECT VERSION(), tidb_version(), @@version").Scan(&version, &long, &variable))
	assert.Equal(t, "8.0.11-TiDB-v8.5.7", version)
	assert.Equal(t, version, variable)
	assert.Contains(t, long, "Release Version: v8.5.7")
	for _, s := range []string{
		"CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY, name VARCHAR(20))", "INSERT INTO shop.t VALUES (1, 'a'), (2, 'b')",
		"SET GLOBAL tidb_gc_life_time = '1h'",
	} {
		_, err := db.ExecContext(t.Context(), s)
		require.NoError(t, err, s)
	}
	var count int
	require.NoError(t, db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM shop.t WHERE id > ?", 1).Scan(&count))
	assert.Equal(t, 1, count)
	rows, err := db.QueryContext(t.Context(), "SHOW DATABASES")
	require.NoError(t, err)
	var names []string
	for rows.Next() {
		var n string
		require.NoError(t, rows.Scan(&n))
		names = append(names, n)
	}
	require.NoError(t, rows.Err())
	require.NoError(t, rows.Close())
	assert.Subset(t, names, []string{"information_schema", "mysql", "shop", "test"})
	_, _, text := call(t, http.MethodGet, r.url("/status"), "")
	assert.Contains(t, string(text), `"connections":1`)
	_, _, text = call(t, http.MethodGet, r.url("/schema"), "")
	assert.Contains(t, string(text), `"shop"`)
	_, err = db.ExecContext(t.Context(), "SELEKT")
	require.Error(t, err)
}

func TestServersOfOneClusterShowTheSameDataAlsoAfterARestart(t *testing.T) {
	pd := pdserver.StartWithStore(t)
	a, b := start(t, pd).ready(t), start(t, pd).ready(t)
	first := a.db(t, "root", "")
	_, err := first.ExecContext(t.Context(), "CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(20))")
	require.NoError(t, err)
	_, err = first.ExecContext(t.Context(), "INSERT INTO t VALUES (?, ?)", 1, "it's")
	require.NoError(t, err, "a prepared statement")
	second := b.db(t, "root", "?interpolateParams=true&multiStatements=true")
	name := func(db *sql.DB) (n string) {
		if err := db.QueryRowContext(t.Context(), "SELECT GROUP_CONCAT(name ORDER BY id) FROM t").Scan(&n); err != nil {
			return err.Error()
		}
		return n
	}
	require.Eventually(t, func() bool { return name(second) == "it's" }, timeout, 10*time.Millisecond)
	_, err = second.ExecContext(t.Context(), "INSERT INTO t VALUES (2, 'b'); INSERT INTO t VALUES (3, 'c')")
	require.NoError(t, err)
	require.Eventually(t, func() bool { return name(first) == "it's,b,c" }, timeout, 10*time.Millisecond)
	tx, err := first.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	_, err = tx.ExecContext(t.Context(), "UPDATE t SET name = 'd' WHERE id = 3")
	require.NoError(t, err)
	require.NoError(t, tx.Commit())
	require.Eventually(t, func() bool { return name(second) == "it's,b,d" }, timeout, 10*time.Millisecond)
	a.end(t)
	b.end(t)
	assert.Equal(t, "it's,b,d", name(start(t, pd).ready(t).db(t, "root", "")))
}

func TestTheInitialScriptRunsOncePerCluster(t *testing.T) {
	pd := pdserver.StartWithStore(t)
	script := filepath.Join(t.TempDir(), "bootstrap.sql")
	require.NoError(t, os.WriteFile(script, []byte("SET PASSWORD FOR 'root'@'%' = 'secret';\nCREATE USER 'app'@'%' IDENTIFIED BY 'x';\n"+
		"GRANT ALL ON test.* TO 'app'@'%';\nCREATE TABLE test.made (id INT);\nFLUSH PRIVILEGES;\n"), 0o600))
	r := start(t, pd, "--initialize-sql-file="+script).ready(t)
	require.Error(t, r.db(t, "root", "").PingContext(t.Context()), "the password is in effect")
	require.NoError(t, r.db(t, "root:secret", "").PingContext(t.Context()))
	var n int
	require.NoError(t, r.db(t, "app:x", "").QueryRowContext(t.Context(), "SELECT COUNT(*) FROM made").Scan(&n))
	require.NoError(t, os.WriteFile(script, []byte("ALTER USER 'root'@'%' IDENTIFIED BY 'other'"), 0o600))
	again := start(t, pd, "--initialize-sql-file="+script).ready(t)
	require.NoError(t, again.db(t, "root:secret", "").PingContext(t.Context()), "a later script is not run")
}

func TestAServerWaitsForAStoreThatAnswers(t *testing.T) {
	pd := pdserver.Start(t)
	pd.Put(&metapb.Store{Id: 1, Address: "127.0.0.1:1"})
	pd.Put(&metapb.Store{Id: 2, Address: pd.Addr, Labels: []*metapb.StoreLabel{{Key: "engine", Value: "tiflash"}}})
	log, err := process.NewLogger(io.Discard, "tidb", "")
	require.NoError(t, err)
	client, err := process.NewPD([]string{pd.Addr}, process.Files{}, log)
	require.NoError(t, err)
	defer client.Close()
	require.NoError(t, client.Retry(t.Context(), "find PD", func(context.Context, pdpb.PDClient) error { return nil }))
	soon, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	require.ErrorIs(t, waitForStore(soon, client), errNoStore)
	pd.Put(&metapb.Store{Id: 3, Address: pd.Addr})
	later, cancelLater := context.WithTimeout(t.Context(), timeout)
	defer cancelLater()
	require.NoError(t, waitForStore(later, client))
}

func TestDB19AServerStopsGracefullyAndLeavesItsTopologyBehind(t *testing.T) {
	pd := pdserver.StartWithStore(t)
	slow := filepath.Join(t.TempDir(), "log", "slow.log")
	file := write(t, "graceful-wait-before-shutdown = 3\n[instance]\ntidb_slow_log_threshold = 100\n")
	r := start(t, pd, "--log-slow-query="+slow, "--config="+file).ready(t)
	require.FileExists(t, slow)
	client, err := pdclient.NewDialer("http://" + pd.Addr)(types.NamespacedName{Name: "pd"})
	require.NoError(t, err)
	defer client.Close()
	registered := func() []operatorpd.Server {
		servers, err := client.Servers(t.Context())
		require.NoError(t, err)
		return servers
	}
	require.Eventually(t, func() bool { return len(registered()) == 1 }, timeout, 10*time.Millisecond)
	alive := registered()[0]
	assert.Equal(t, r.address(), alive.Address)
	assert.True(t, alive.Alive)
	gone, err := client.ForgetServer(t.Context(), alive)
	require.NoError(t, err)
	assert.False(t, gone, "it lives")

	db := r.db(t, "root", "")
	answered := make(chan error, 1)
	go func() {
		var n int
		answered <- db.QueryRowContext(t.Context(), "SELECT SLEEP(3.5)").Scan(&n)
	}()
	require.Eventually(t, func() bool {
		_, _, text := call(t, http.MethodGet, r.url("/metrics"), "")
		return bytes.Contains(text, []byte("statements_total 1"))
	}, timeout, 10*time.Millisecond)
	r.stop()
	require.Eventually(t, func() bool { code, _, _ := call(t, http.MethodGet, r.url("/status"), ""); return code == 500 }, timeout, 10*time.Millisecond)
	require.NoError(t, <-answered, "a statement that runs is finished")
	r.end(t)
	left := registered()
	require.Len(t, left, 1, "its topology stays (DB-19)")
	assert.False(t, left[0].Alive)
	older := left[0]
	older.Revision--
	for _, c := range []struct {
		server operatorpd.Server
		gone   bool
	}{{older, false}, {left[0], true}, {left[0], false}} {
		gone, err := client.ForgetServer(t.Context(), c.server)
		require.NoError(t, err)
		assert.Equal(t, c.gone, gone, "%+v", c.server)
	}
	assert.Empty(t, registered())
	text, err := os.ReadFile(slow)
	require.NoError(t, err)
	all := regexp.MustCompile(`# Query_time: ([0-9.]+)`).FindAllSubmatch(text, -1) // on a busy machine others are slow, too
	require.NotEmpty(t, all)
	seconds, err := strconv.ParseFloat(string(all[len(all)-1][1]), 64)
	require.NoError(t, err)
	assert.GreaterOrEqual(t, seconds, 3.5)
	assert.Less(t, seconds, timeout.Seconds())
	assert.Contains(t, string(text), "SELECT SLEEP(3.5);")
}

func TestUpgradeStates(t *testing.T) {
	r := start(t, pdserver.StartWithStore(t)).ready(t)
	ask := func(method, path string) (int, string) {
		code, _, text := call(t, method, r.url(path), "")
		return code, string(text)
	}
	_, text := ask(http.MethodPost, "/upgrade/show")
	assert.Contains(t, text, "normal")
	for _, path := range []string{"/upgrade/start", "/upgrade/finish", "/upgrade/show"} {
		code, text := ask(http.MethodGet, path)
		assert.Equal(t, 400, code, path)
		assert.Equal(t, "This api only support POST method", text, path)
	}
	_, text = ask(http.MethodPost, "/upgrade/start")
	assert.Equal(t, `"success!"`, text)
	_, text = ask(http.MethodPost, "/upgrade/start")
	assert.Contains(t, text, "duplicated operation")
	_, text = ask(http.MethodPost, "/upgrade/show")
	assert.Contains(t, text, "upgraded_percent")
	_, text = ask(http.MethodPost, "/upgrade/finish")
	assert.Equal(t, `"success!"`, text)
}
