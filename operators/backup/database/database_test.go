package database

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/backup/failure"
)

func TestBR04DatabasesOfUsersAreFound(t *testing.T) {
	assert.Equal(t, []string{"shop", "test"}, ofUsers([]string{"INFORMATION_SCHEMA", "mysql", "shop", "sys", "test", "lightning_task_info", "METRICS_SCHEMA", "PERFORMANCE_SCHEMA"}, TaskSchema))
	assert.True(t, strings.HasSuffix(QuoteName("a`b"), "a``b`"))
}

// A user whose password has expired, or who is locked, is refused: the database answers.
func TestBR04AUserThatIsLockedOrMustChangeItsPasswordIsRefused(t *testing.T) {
	for _, number := range []uint16{1045, 1820, 1862, 3118, 3955} {
		assert.True(t, IsRefusal(&mysql.MySQLError{Number: number}), number)
		words := fmt.Sprintf("dump failed: Error %d (HY000): words", number)
		assert.Equal(t, v1alpha1.ReasonLoginRefused, failure.OfTool(words), number)
	}
	assert.False(t, IsRefusal(&mysql.MySQLError{Number: 1040}), "too many connections pass")
}

func TestBR04NothingIsRestoredIntoDatabasesOfUsers(t *testing.T) {
	require.NoError(t, CheckEmpty(t.Context(), nil, []string{"mysql", "INFORMATION_SCHEMA", "sys", TaskSchema}, TaskSchema))
	err := CheckEmpty(t.Context(), nil, []string{"mysql", "shop"})
	require.ErrorContains(t, err, "the cluster has databases of users: shop")
	assert.Equal(t, v1alpha1.ReasonDatabaseNotEmpty, failure.NewResult(err, "", false).Reason)
	assert.False(t, failure.NewResult(err, "", false).Begun, "it is tried again when they are dropped")
}

// A user may have such a password, of spec.initialization.users, too.
func TestBR04SpaceAroundAPasswordBelongsToIt(t *testing.T) {
	d := Server{Password: filepath.Join(t.TempDir(), "password"), PasswordOf: "key password of Secret s"}
	for text, want := range map[string]string{"secret": "secret", "secret\n": "secret", "secret\r\n": "secret", " secret\t\n": " secret\t", "  ": "  "} {
		require.NoError(t, os.WriteFile(d.Password, []byte(text), 0o600))
		got, err := d.ReadPassword()
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	for text, want := range map[string]string{"": "key password of Secret s is empty", "\n": "key password of Secret s is empty", "one\ntwo\n": "a password is one line"} {
		require.NoError(t, os.WriteFile(d.Password, []byte(text), 0o600))
		_, err := d.ReadPassword()
		require.ErrorContains(t, err, want)
	}
}
