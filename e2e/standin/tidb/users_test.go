package tidb

import (
	"database/sql"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/e2e/standin/process/pdserver"
	"github.com/tidb-groups/tidb-groups/operators/tidbgroup/initialsql"
)

// as connects as a user, whose password needs no quoting here.
func (r *running) as(t *testing.T, user, password string) *sql.DB {
	t.Helper()
	c := mysql.NewConfig()
	c.User, c.Passwd, c.Net, c.Addr = user, password, "tcp", r.address()
	connector, err := mysql.NewConnector(c)
	require.NoError(t, err)
	db := sql.OpenDB(connector)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// The server's parser is another one than that of the script's own tests, and a
// client says the password as it is in the Secret.
func TestDB10TheUsersOfASecretConnectWithTheirPasswords(t *testing.T) {
	passwords := map[string]string{
		"root": `it's \ "$HOME" $$`, "plain": "plain", "quotes": `''"'\'`, "slashes": `\\\n\%\_\`, "sql": "x'; DROP USER root; -- ", "wide": "密码 é 🔑", "shell": "$(id) `id` * ? ~ !", "blank": "  ",
	}
	people, into := t.TempDir(), t.TempDir()
	for user, password := range passwords {
		require.NoError(t, os.WriteFile(filepath.Join(people, user), []byte(password+"\n"), 0o600))
	}
	container, _ := initialsql.Composition{Users: &v1alpha1.InitialUsers{Secret: "people"}, Into: corev1.VolumeMount{Name: "sql", MountPath: into}}.Container()
	command := slices.Clone(container.Command)
	mount := slices.IndexFunc(container.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath != into })
	at := slices.Index(command, container.VolumeMounts[mount].MountPath)
	require.Positive(t, at)
	command[at] = people
	out, err := exec.CommandContext(t.Context(), command[0], command[1:]...).CombinedOutput()
	require.NoError(t, err, string(out))

	r := start(t, pdserver.StartWithStore(t), "--initialize-sql-file="+filepath.Join(into, initialsql.File)).ready(t)
	for user, password := range passwords {
		require.NoError(t, r.as(t, user, password).PingContext(t.Context()), user)
		assert.Error(t, r.as(t, user, password+"x").PingContext(t.Context()), user)
		assert.Error(t, r.as(t, user, "").PingContext(t.Context()), user)
	}
}
