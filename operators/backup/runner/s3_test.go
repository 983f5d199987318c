package runner

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/backup/failure"
	"github.com/tidb-groups/tidb-groups/operators/backup/storage"
	"github.com/tidb-groups/tidb-groups/shared/testkit/objectstore"
)

// What was tested on a volume holds for a bucket too.
func TestBR04AFolderOfABucketBelongsToOneBackup(t *testing.T) {
	s := serve(t)
	for _, name := range []string{"other", "prod/monday2/data/x", "prod/monday.txt"} {
		file := filepath.Join(s.dir, "copies", name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, nil, 0o600))
	}
	p, err := look(t.Context(), s.storage(t), "u")
	require.NoError(t, err)
	assert.Equal(t, v1alpha1.ReasonFolderTaken, failure.NewResult(p.Begin(t.Context(), storage.Marker{UID: "v"}), "", false).Reason, "both have found it free")
	_, err = look(t.Context(), s.storage(t), "v")
	require.ErrorContains(t, err, "has part of a backup")

	c := Command{UID: "u", Scratch: t.TempDir(), Storage: s.storage(t)}
	c.Tool = tool(t, `test "$AWS_ACCESS_KEY_ID" = `+access+` && test "$AWS_SECRET_ACCESS_KEY" = `+secret+` || exit 1`)
	require.NoError(t, p.Blobs.WriteAll(t.Context(), "prod/monday/data/metadata", []byte("Pos: 42\n"), nil))
	m, err := c.dump(t.Context(), p, os.Stderr, storage.Marker{UID: "u", Server: "v8"}, "")
	require.NoError(t, err)
	assert.Equal(t, storage.Marker{UID: "u", Complete: true, Server: "v8", TSO: "42", TimeZone: "+00:00", Bytes: 8}, m)
	there, err := p.Remove(t.Context(), "u")
	require.NoError(t, err)
	assert.True(t, there)
	assert.ElementsMatch(t, []string{"other", "prod/monday2/data/x", "prod/monday.txt"}, objectstore.Files(t, filepath.Join(s.dir, "copies")))
}
