package storage

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gocloud.dev/blob"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/backup/failure"
	"github.com/tidb-groups/tidb-groups/shared/testkit/objectstore"
)

// volume is one with files, by their path.
func volume(t *testing.T, files map[string]string) (dir string, p *Place) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range files {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o750))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	p, err := Storage{Volume: dir, Folder: "p/b"}.Open(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, p.Blobs.Close()) })
	return dir, p
}

func TestBR04OnlyFilesBelowAMarkerOfTheBackupAreDeleted(t *testing.T) {
	beside := map[string]string{"p/b2/data/x": "", "p/b.txt": "", "other": ""}
	with := func(more map[string]string) map[string]string {
		for k, v := range beside {
			more[k] = v
		}
		return more
	}
	for name, c := range map[string]struct {
		files map[string]string
		there bool
		left  []string
		fails string
	}{
		"its own":          {with(map[string]string{"p/b/backup.json": `{"uid":"u"}`, "p/b/data/x": "", "p/b/data/y": ""}), true, nil, ""},
		"another's":        {with(map[string]string{"p/b/backup.json": `{"uid":"v"}`, "p/b/data/x": ""}), false, []string{"p/b/backup.json", "p/b/data/x"}, ""},
		"without a marker": {with(map[string]string{"p/b/data/x": ""}), false, []string{"p/b/data/x"}, ""},
		"nothing":          {with(map[string]string{}), false, nil, ""},
		"not a marker":     {with(map[string]string{"p/b/backup.json": "hello", "p/b/data/x": ""}), false, []string{"p/b/backup.json", "p/b/data/x"}, "is not a backup's"},
		"no UID":           {with(map[string]string{"p/b/backup.json": "{}"}), false, []string{"p/b/backup.json"}, "is not a backup's"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, p := volume(t, c.files)
			there, err := p.Remove(t.Context(), "u")
			if c.fails == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.fails)
			}
			assert.Equal(t, c.there, there)
			assert.ElementsMatch(t, append(c.left, "p/b2/data/x", "p/b.txt", "other"), objectstore.Files(t, dir))
			if c.there {
				assert.NoDirExists(t, filepath.Join(dir, "p/b"))
			}
		})
	}
}

// A file's error has the methods of one of a network.
func TestBR04AnErrorOfAVolumeNamesNoServer(t *testing.T) {
	_, p := volume(t, map[string]string{"p/b": ""})
	_, err := p.ReadDataFile(t.Context(), "x")
	require.ErrorContains(t, err, "in the volume: ")
	assert.NotContains(t, err.Error(), "does not answer")
	assert.Equal(t, v1alpha1.ReasonRunFailed, failure.NewResult(err, "", false).Reason)
}

func TestBR04AFolderIsTakenOnlyIfItIsFree(t *testing.T) {
	for name, c := range map[string]struct {
		files  map[string]string
		done   bool
		reason string
		left   int
	}{
		"free":                          {map[string]string{"p/bb/data/x": ""}, false, "", 1},
		"of another backup":             {map[string]string{"p/b/backup.json": `{"uid":"v","complete":true}`}, false, v1alpha1.ReasonFolderTaken, 1},
		"of half a backup":              {map[string]string{"p/b/backup.json": `{"uid":"v"}`, "p/b/data/x": ""}, false, v1alpha1.ReasonFolderTaken, 2},
		"of other files":                {map[string]string{"p/b/x": ""}, false, v1alpha1.ReasonFolderTaken, 1},
		"half of the same, of before":   {map[string]string{"p/b/backup.json": `{"uid":"u"}`, "p/b/data/x": ""}, false, "", 0},
		"all of the same, told by none": {map[string]string{"p/b/backup.json": `{"uid":"u","complete":true}`, "p/b/data/x": ""}, true, "", 2},
	} {
		t.Run(name, func(t *testing.T) {
			dir, p := volume(t, c.files)
			done, err := p.Claim(t.Context(), "u")
			assert.Equal(t, c.done, done != nil)
			if c.reason == "" {
				require.NoError(t, err)
			} else {
				assert.Equal(t, c.reason, failure.NewResult(err, "", false).Reason)
			}
			assert.Len(t, objectstore.Files(t, dir), c.left)
		})
	}
}

// A Backup whose pod was killed three times leaves files. Who deletes it and recreates it, as it says, finds them.
func TestBR04AFolderThatIsTakenSaysHowToGoOn(t *testing.T) {
	for marker, words := range map[string]string{
		`{"uid":"v"}`:                 "has part of a backup, of a Backup with UID v: create this one with another name, or delete the folder if that Backup is gone",
		`{"uid":"v","complete":true}`: "has another backup, of a Backup with UID v: create this one with another name",
	} {
		_, p := volume(t, map[string]string{"p/b/backup.json": marker})
		_, err := p.Claim(t.Context(), "u")
		assert.ErrorContains(t, err, words)
	}
}

// Of two backups that find a folder free at the same time one goes on at most, and none is
// called complete whose files may be mixed with another's.
func TestBR04AFolderBelongsToOneBackup(t *testing.T) {
	_, p := volume(t, nil)
	require.NoError(t, p.Begin(t.Context(), Marker{UID: "u", Server: "v8"}))
	assert.Equal(t, v1alpha1.ReasonFolderTaken, failure.NewResult(p.Begin(t.Context(), Marker{UID: "v", Server: "v8"}), "", false).Reason)
	_, err := p.Finish(t.Context(), Marker{UID: "u"})
	require.NoError(t, err)

	// A storage without conditions lets the second write its marker too.
	require.NoError(t, p.write(t.Context(), Marker{UID: "v"}, nil))
	_, err = p.Finish(t.Context(), Marker{UID: "u"})
	assert.Equal(t, v1alpha1.ReasonFolderTaken, failure.NewResult(err, "", false).Reason)
	there, err := p.Marker(t.Context())
	require.NoError(t, err)
	assert.Equal(t, &Marker{UID: "v"}, there)
	require.NoError(t, p.Blobs.Delete(t.Context(), p.markerKey()))
	_, err = p.Finish(t.Context(), Marker{UID: "u"})
	assert.Equal(t, v1alpha1.ReasonFolderTaken, failure.NewResult(err, "", false).Reason)
}

// A node that was cut off goes on with a run that was given up, while the next one writes into
// the folder, or has ended. Both have files of the same names.
func TestBR04TwoRunsOfABackupAreNotMixed(t *testing.T) {
	dir, p := volume(t, nil)
	first, second := NewMarker("u", "v8"), NewMarker("u", "v8")
	write := func(m Marker) {
		to := p.WithData(&m)
		require.NoError(t, os.MkdirAll(to.URL(), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(to.URL(), "a.t.sql"), []byte(m.Attempt), 0o600))
	}
	require.NoError(t, p.Begin(t.Context(), first))
	write(first)
	_, err := p.Claim(t.Context(), "u")
	require.NoError(t, err)
	assert.Empty(t, objectstore.Files(t, dir))
	require.NoError(t, p.Begin(t.Context(), second))

	write(second)
	write(first)
	_, err = p.WithData(&first).Finish(t.Context(), first)
	assert.Equal(t, v1alpha1.ReasonFolderTaken, failure.NewResult(err, "", false).Reason)
	require.NoError(t, p.RemoveAttempt(t.Context(), first))
	_, err = p.WithData(&second).Finish(t.Context(), second)
	require.NoError(t, err, "the first has removed nothing of it")
	write(first)
	for _, of := range []Marker{first, second} {
		require.NoError(t, p.RemoveAttempt(t.Context(), of))
	}
	there, err := p.ReadComplete(t.Context(), "u")
	require.NoError(t, err, "what is complete stays")
	assert.Equal(t, int64(len(second.Attempt)), there.Bytes)
	var files []string
	require.NoError(t, p.WithData(there).ForEachDataFile(t.Context(), func(file *blob.ListObject) error {
		text, err := p.Blobs.ReadAll(t.Context(), file.Key)
		files = append(files, string(text))
		return err
	}))
	assert.Equal(t, []string{second.Attempt}, files, "a Restore reads those of the run that is complete")

	write(first)
	_, err = p.Remove(t.Context(), "u")
	require.NoError(t, err)
	assert.Empty(t, objectstore.Files(t, dir), "a deleted Backup leaves nothing of either")
	assert.NoDirExists(t, filepath.Join(dir, p.Folder))
}

func TestBR04ARestoreReadsOnlyACompleteBackup(t *testing.T) {
	for text, uid := range map[string]string{``: "", `{"uid":"u"}`: "", `{"uid":"v","complete":true}`: "u"} {
		all := map[string]string{}
		if text != "" {
			all["p/b/backup.json"] = text
		}
		_, p := volume(t, all)
		_, err := p.ReadComplete(t.Context(), uid)
		require.Error(t, err)
		assert.Equal(t, v1alpha1.ReasonBackupUnreadable, failure.NewResult(err, "", false).Reason)
	}
	_, p := volume(t, map[string]string{"p/b/backup.json": `{"uid":"v","complete":true,"bytes":7}`})
	m, err := p.ReadComplete(t.Context(), "")
	require.NoError(t, err)
	assert.Equal(t, int64(7), m.Bytes)
}

// BR that was killed while it truncated a log leaves its lock, and refuses to truncate until that is gone.
func TestBR01ATruncationThatWasKilledIsBegunAgain(t *testing.T) {
	st := Storage{Volume: t.TempDir(), Folder: "pitr"}
	p, err := st.Open(t.Context())
	require.NoError(t, err)
	defer func() { assert.NoError(t, p.Blobs.Close()) }()
	require.NoError(t, p.RemoveStaleLock(t.Context(), "pitr-log-8-abcde"), "without a lock there is nothing to do")
	for host, stays := range map[string]bool{
		"pitr-log-7-x2b4k": false, "other-log-7-x2b4k": true, "a-laptop": true, "": true,
	} {
		text := `{"locked_at":"2026-01-02T03:04:05Z","locker_host":"` + host + `","locker_pid":7,"hint":"words"}`
		require.NoError(t, p.Blobs.WriteAll(t.Context(), "pitr/data/truncating.lock", []byte(text), nil))
		require.NoError(t, p.RemoveStaleLock(t.Context(), "pitr-log-8-abcde"))
		there, err := p.Blobs.Exists(t.Context(), "pitr/data/truncating.lock")
		require.NoError(t, err)
		assert.Equal(t, stays, there, host)
	}
	require.NoError(t, p.Blobs.WriteAll(t.Context(), "pitr/data/truncating.lock", []byte(`{"locker_host":"x"}`), nil))
	require.NoError(t, p.RemoveStaleLock(t.Context(), "y"))
	there, err := p.Blobs.Exists(t.Context(), "pitr/data/truncating.lock")
	require.NoError(t, err)
	assert.True(t, there)
}
