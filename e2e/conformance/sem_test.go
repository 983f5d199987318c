package conformance_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/operators/tidbgroup/sqlrun"
	"github.com/tidb-groups/tidb-groups/shared/settings"
)

// A TiDBGroup with security.enable-sem in its config: what these operators do with a server
// works all the same, as docs/reference/tidbgroup.md says.
func TestDB13ARealTiDBInItsSecurityEnhancedMode(t *testing.T) {
	onlyReal(t)
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		return filepath.Join(dir, name)
	}
	first := write("init.sql", "ALTER USER 'root'@'%' IDENTIFIED BY 'pw';\nCREATE USER admin IDENTIFIED BY 'pw';\nGRANT ALL, RESTRICTED_TABLES_ADMIN ON *.* TO admin;\n")
	server := newTiDB(t, dir)
	server.run(t, fmt.Sprintf("initialize-sql-file = '%s'\n[security]\nenable-sem = true\n", first))

	users := filepath.Dir(write("users/ann", "secret"))
	job := sqlrun.Run{
		Address: net.JoinHostPort(server.host, server.port), User: "root", Password: write("password", "pw"), Users: users, Host: "%", Of: "users",
		Within: 2 * timeout, Pause: time.Second,
	}
	_, err := job.Do(t.Context())
	require.NoError(t, err, "users of spec.sql")
	job.Users, job.File = "", write("run.sql", "CREATE DATABASE shop;\nGRANT SELECT ON shop.* TO ann;\nSET GLOBAL require_secure_transport = OFF;\n")
	_, err = job.Do(t.Context())
	require.NoError(t, err, "SQL of spec.sql")
	require.NoError(t, opened(t, server, "ann", "secret").PingContext(t.Context()))

	const hidden = "SELECT COUNT(*) FROM mysql.tidb"
	_, err = opened(t, server, "root", "pw").ExecContext(t.Context(), hidden)
	require.Error(t, err, "root is not let do everything")
	_, err = opened(t, server, "root", "pw").ExecContext(t.Context(), "GRANT RESTRICTED_TABLES_ADMIN ON *.* TO root")
	require.Error(t, err, "nor may it let itself")
	_, err = opened(t, server, "admin", "pw").ExecContext(t.Context(), hidden)
	require.NoError(t, err, "who got the right from bootstrapSQL may")

	number, err := strconv.Atoi(server.statusPort)
	require.NoError(t, err)
	port := settings.Port(number) //nolint:gosec // a port
	_, err = server.settings(t, nil)
	require.NoError(t, err)
	refusal, err := port.Post(t.Context(), server.statusHost, "/labels", "application/json", `{"zone": "a"}`)
	require.NoError(t, err)
	require.Empty(t, refusal, "labels")
	refusal, err = port.Post(t.Context(), server.statusHost, "/settings", "application/x-www-form-urlencoded", "log_level=warn")
	require.NoError(t, err)
	require.Empty(t, refusal, "configuration that is changed while it runs")
}
