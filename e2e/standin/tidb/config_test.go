package tidb

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/e2e/standin/process"
)

func noEnv(string) string { return "" }

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tidb.toml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestParseArgs(t *testing.T) {
	file := write(t, "graceful-wait-before-shutdown = 2\nport = 1\n[labels]\nzone = \"z1\"\n[instance]\ntidb_slow_log_threshold = 100\n[log.file]\nmax-days = 3\n")
	cfg, err := ParseArgs([]string{
		"--store=tikv", "--path=basic-pd.ns.svc:2379", "--host=0.0.0.0", "-P=4000", "--report-status=true", "--status-host=0.0.0.0",
		"--status=10080", "--advertise-address=tidb-0.peer.ns.svc", "--config=" + file, "--log-slow-query=/var/log/tidb/slow.log",
		"--initialize-sql-file=/etc/tidb-bootstrap/bootstrap.sql",
	}, noEnv, io.Discard)
	require.NoError(t, err)
	assert.Equal(t, 4000, cfg.Port, "a flag goes over the file")
	assert.Equal(t, 10080, cfg.StatusPort)
	assert.Equal(t, "tidb-0.peer.ns.svc", cfg.Advertise)
	assert.Equal(t, "/var/log/tidb/slow.log", cfg.SlowLog)
	assert.Equal(t, 100*time.Millisecond, cfg.SlowThreshold)
	assert.Equal(t, 2*time.Second, cfg.GracefulWait)
	assert.Equal(t, map[string]string{"zone": "z1"}, cfg.Labels)
	assert.Equal(t, "8.0.11-TiDB-v8.5.7", cfg.ServerVersion())
	assert.EqualValues(t, 3, process.Lookup(cfg.Document, "log.file.max-days"))
	assert.EqualValues(t, 300, process.Lookup(cfg.Document, "log.file.max-size"), "a default that was not changed")
}

func TestParseArgsTakesIPv6(t *testing.T) {
	cfg, err := ParseArgs([]string{"--store=tikv", "--path=pd:2379", "--host=::", "--status-host=::", "--advertise-address=tidb-0"}, noEnv, io.Discard)
	require.NoError(t, err)
	assert.Equal(t, "::", cfg.Host)
	assert.Equal(t, "::", cfg.StatusHost)
}

func TestParseArgsTakesEveryFlagOfTheRealOne(t *testing.T) {
	cfg, err := ParseArgs(strings.Fields(`-store tikv -path a:2379,b:2379 -cors * -socket /tmp/s -enable-binlog=false -run-ddl=true
		-lease 45s -token-limit 100 -plugin-dir /p -plugin-load x -repair-mode=false -temp-dir /t -log-file /l -L warn
		-log-general /g -metrics-addr m:1 -metrics-interval 5 -proxy-protocol-networks * -initialize-insecure
		-disconnect-on-expired-password=false -keyspace-name k -tidb-service-scope s -config-strict`), noEnv, io.Discard)
	require.NoError(t, err)
	assert.Empty(t, cfg.SlowLog, "no slow log unless it is asked for")
	assert.Equal(t, "warn", cfg.LogLevel)
	assert.Equal(t, "k", cfg.Document["keyspace-name"])
	assert.Equal(t, "*", process.Lookup(cfg.Document, "proxy-protocol.networks"))
	assert.Equal(t, false, process.Lookup(cfg.Document, "security.disconnect-on-expired-password"))
}

func TestParseArgsRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		toml string
		want string
	}{
		"an unknown flag":             {args: []string{"--nosuch"}, want: "nosuch"},
		"an argument that is no flag": {args: []string{"x"}, want: `"x"`},
		"an unknown top-level key":    {toml: "nosuch = 1", want: "nosuch"},
		"an unknown section":          {toml: "[nosuch]\na = 1", want: "nosuch"},
		"an unknown key in a section": {toml: "[performance]\nnosuch = 1", want: "performance.nosuch"},
		"a store without PD":          {args: []string{"--store=unistore"}, want: "unistore"},
		"half of TLS":                 {toml: "[security]\ncluster-ssl-ca = \"/x\"", want: "belong together"},
		"a port that is none":         {args: []string{"-P=70000"}, want: "port"},
		"a file that is not there":    {args: []string{"--config=/nonexistent"}, want: "no such file"},
		"a check without a file":      {args: []string{"--config-check"}, want: "config check failed"},
	} {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"--store=tikv"}, c.args...)
			if c.toml != "" {
				args = append(args, "--config="+write(t, c.toml))
			}
			_, err := ParseArgs(args, noEnv, io.Discard)
			require.ErrorContains(t, err, c.want)
			require.NotErrorIs(t, err, process.ErrHelp)
		})
	}
	for _, args := range [][]string{{"-V"}, {"-h"}, {"--store=tikv", "--config-check", "--config=" + write(t, "port = 1")}} {
		_, err := ParseArgs(args, noEnv, io.Discard)
		require.ErrorIs(t, err, process.ErrHelp)
	}
}

func TestWrites(t *testing.T) {
	for statement, want := range map[string]bool{
		"SELECT 1": false, "insert into t values (1)": true, "  /* x */ CREATE TABLE t (a int)": true, "-- x\nDROP TABLE t": true,
		"create temporary table t (a int)": false, "SET @x = 1": false, "set global tidb_gc_life_time = '1h'": true,
		"BEGIN": false, "SHOW DATABASES": false, "grant all on *.* to x": true, "": false, "USE test": false,
	} {
		assert.Equal(t, want, needsLogging(statement), statement)
	}
}

func TestRewrite(t *testing.T) {
	assert.Equal(t, "ALTER USER 'root'@'%' IDENTIFIED BY 'x';", rewriteStatement("SET PASSWORD FOR 'root'@'%' = 'x';"))
	assert.Equal(t, "SET @stand_in_transaction = 1; INSERT INTO t VALUES (1); COMMIT", rewriteStatement("BEGIN; INSERT INTO t VALUES (1); COMMIT"))
	assert.Equal(t, "SELECT 1", rewriteStatement("SELECT 1"))
}
