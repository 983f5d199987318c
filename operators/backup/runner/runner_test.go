package runner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/backup/result"
)

// volume is one with files, by their path.
func volume(t *testing.T, files map[string]string) (dir string, p *place) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range files {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o750))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	p, err := Storage{Volume: dir, Folder: "p/b"}.open(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, p.bucket.Close()) })
	return dir, p
}

// files lists the files of a folder.
func files(t *testing.T, dir string) (out []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			name, _ := filepath.Rel(dir, path)
			out = append(out, name)
		}
		return err
	}))
	return out
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
		"its own":      {with(map[string]string{"p/b/backup.json": `{"uid":"u"}`, "p/b/data/x": "", "p/b/data/y": ""}), true, nil, ""},
		"another's":    {with(map[string]string{"p/b/backup.json": `{"uid":"v"}`, "p/b/data/x": ""}), false, []string{"p/b/backup.json", "p/b/data/x"}, ""},
		"nobody's":     {with(map[string]string{"p/b/data/x": ""}), false, []string{"p/b/data/x"}, ""},
		"nothing":      {with(map[string]string{}), false, nil, ""},
		"not a marker": {with(map[string]string{"p/b/backup.json": "hello", "p/b/data/x": ""}), false, []string{"p/b/backup.json", "p/b/data/x"}, "is none of a backup"},
		"no UID":       {with(map[string]string{"p/b/backup.json": "{}"}), false, []string{"p/b/backup.json"}, "is none of a backup"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, p := volume(t, c.files)
			there, err := p.remove(t.Context(), "u")
			if c.fails == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.fails)
			}
			assert.Equal(t, c.there, there)
			assert.ElementsMatch(t, append(c.left, "p/b2/data/x", "p/b.txt", "other"), files(t, dir))
			if c.there {
				assert.NoDirExists(t, filepath.Join(dir, "p/b"))
			}
		})
	}
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
		"of other files":                {map[string]string{"p/b/x": ""}, false, v1alpha1.ReasonFolderTaken, 1},
		"half of the same, of before":   {map[string]string{"p/b/backup.json": `{"uid":"u"}`, "p/b/data/x": ""}, false, "", 0},
		"all of the same, told by none": {map[string]string{"p/b/backup.json": `{"uid":"u","complete":true}`, "p/b/data/x": ""}, true, "", 2},
	} {
		t.Run(name, func(t *testing.T) {
			dir, p := volume(t, c.files)
			done, err := p.claim(t.Context(), "u")
			assert.Equal(t, c.done, done != nil)
			if c.reason == "" {
				require.NoError(t, err)
			} else {
				assert.Equal(t, c.reason, resultOf(err, "", false).Reason)
			}
			assert.Len(t, files(t, dir), c.left)
		})
	}
}

// Of two backups that find a folder free at the same time one goes on at most, and none is
// called complete whose files may be mixed with another's.
func TestBR04AFolderIsOneBackups(t *testing.T) {
	_, p := volume(t, nil)
	require.NoError(t, p.begin(t.Context(), marker{UID: "u", Server: "v8"}))
	assert.Equal(t, v1alpha1.ReasonFolderTaken, resultOf(p.begin(t.Context(), marker{UID: "v", Server: "v8"}), "", false).Reason)
	_, err := p.finish(t.Context(), marker{UID: "u"})
	require.NoError(t, err)

	// A storage without conditions lets the second write its marker too.
	require.NoError(t, p.write(t.Context(), marker{UID: "v"}, nil))
	_, err = p.finish(t.Context(), marker{UID: "u"})
	assert.Equal(t, v1alpha1.ReasonFolderTaken, resultOf(err, "", false).Reason)
	there, err := p.marker(t.Context())
	require.NoError(t, err)
	assert.Equal(t, &marker{UID: "v"}, there)
	require.NoError(t, p.bucket.Delete(t.Context(), p.markerKey()))
	_, err = p.finish(t.Context(), marker{UID: "u"})
	assert.Equal(t, v1alpha1.ReasonFolderTaken, resultOf(err, "", false).Reason)
}

func TestBR04ARestoreReadsOnlyACompleteBackup(t *testing.T) {
	for text, uid := range map[string]string{``: "", `{"uid":"u"}`: "", `{"uid":"v","complete":true}`: "u"} {
		all := map[string]string{}
		if text != "" {
			all["p/b/backup.json"] = text
		}
		_, p := volume(t, all)
		_, err := p.complete(t.Context(), uid)
		require.Error(t, err)
		assert.Equal(t, v1alpha1.ReasonBackupUnreadable, resultOf(err, "", false).Reason)
	}
	_, p := volume(t, map[string]string{"p/b/backup.json": `{"uid":"v","complete":true,"bytes":7}`})
	m, err := p.complete(t.Context(), "")
	require.NoError(t, err)
	assert.Equal(t, int64(7), m.Bytes)
}

// tool is a program that plays a tool.
func tool(t *testing.T, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tool")
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o700)) //nolint:gosec // it is run
	return path
}

func TestBR04ABackupIsCompleteOnlyWithItsPosition(t *testing.T) {
	dir, p := volume(t, nil)
	c := Command{UID: "u", Scratch: t.TempDir(), Storage: p.Storage}
	writes := `for a; do case "$before" in --output) d=$a;; esac; before=$a; done; mkdir -p "$d"; echo x >"$d/t.sql"; `
	c.Tool = tool(t, writes+`printf 'SHOW MASTER STATUS:\n\tLog: tidb-binlog\n\tPos: 42\n' >"$d/metadata"`)
	require.NoError(t, p.begin(t.Context(), marker{UID: "u", Server: "v8"}))
	m, err := c.dump(t.Context(), p, io.Discard, marker{UID: "u", Server: "v8"}, "secret")
	require.NoError(t, err)
	assert.Equal(t, marker{UID: "u", Complete: true, Server: "v8", TSO: "42", Bytes: m.Bytes}, m)
	assert.Positive(t, m.Bytes)
	read, err := p.marker(t.Context())
	require.NoError(t, err)
	assert.Equal(t, &m, read)

	require.NoError(t, os.RemoveAll(filepath.Join(dir, "p")))
	c.Tool = tool(t, writes+`echo nothing >"$d/metadata"`)
	_, err = c.dump(t.Context(), p, io.Discard, marker{UID: "u", Server: "v8"}, "")
	require.ErrorContains(t, err, "no position")
	assert.NotContains(t, files(t, dir), "p/b/backup.json")
}

func TestBR04AToolIsStoppedAndItsLastWordsAreTold(t *testing.T) {
	c := Command{Scratch: t.TempDir()}
	var log bytes.Buffer
	c.Tool = tool(t, `echo "[INFO] begins"; echo "dump failed: write: no space left on device" >&2; echo "  at main.go:7"; exit 1`)
	err := c.runTool(t.Context(), &log, nil, nil)
	r := resultOf(err, "", true, "write")
	assert.Equal(t, result.Result{Reason: v1alpha1.ReasonStorageFull, Message: "dump failed: ***: no space left on device (exit status 1)", Begun: true}, r)
	assert.Contains(t, log.String(), "begins")

	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	c.Tool = tool(t, `exec sleep 60`)
	begin := time.Now()
	require.ErrorContains(t, c.runTool(ctx, &log, nil, nil), "told to stop")
	assert.Less(t, time.Since(begin), stopTimeout)
}

func TestBR04CausesAreNamed(t *testing.T) {
	for words, reason := range map[string]string{
		"tidb lightning encountered error: Error 1045 (28000): Access denied for user": v1alpha1.ReasonLoginRefused,
		"dump failed: Error 1142 (42000): SELECT command denied to user":               v1alpha1.ReasonLoginRefused,
		"create dumper failed: dial tcp 10.0.0.1:4000: connect: connection refused":    v1alpha1.ReasonDatabaseUnreachable,
		"dump failed: NoSuchBucket: The specified bucket does not exist":               v1alpha1.ReasonBucketMissing,
		"dump failed: AccessDenied: Access Denied":                                     v1alpha1.ReasonStorageRefused,
		"dump failed: open /backups/x: permission denied":                              v1alpha1.ReasonStorageRefused,
		"dump failed: write /backups/x: no space left on device":                       v1alpha1.ReasonStorageFull,
		"dump failed: googleapi: Error 403: copier does not have access":               v1alpha1.ReasonStorageRefused,
		"dump failed: ERROR CODE: AuthorizationPermissionMismatch":                     v1alpha1.ReasonStorageRefused,
		"dump failed: ERROR CODE: ContainerNotFound":                                   v1alpha1.ReasonBucketMissing,
		"dump failed: something else":                                                  v1alpha1.ReasonRunFailed,
	} {
		assert.Equal(t, reason, toolReason(words), words)
	}
	p := &place{Storage: Storage{Bucket: "b", CredentialsOf: "Secret s", Endpoint: "http://e"}}
	for reason, err := range map[string]error{
		v1alpha1.ReasonStorageFull:        fmt.Errorf("write: %w", syscall.ENOSPC),
		v1alpha1.ReasonBucketMissing:      &smithy.GenericAPIError{Code: "NoSuchBucket"},
		v1alpha1.ReasonStorageRefused:     &smithy.GenericAPIError{Code: "SignatureDoesNotMatch"},
		v1alpha1.ReasonStorageUnreachable: &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED},
		v1alpha1.ReasonRunFailed:          errors.New("x"),
	} {
		assert.Equal(t, reason, resultOf(p.told("look into", err), "", false).Reason)
	}
	_, err := Storage{Bucket: "b", Credentials: t.TempDir(), CredentialsOf: "Secret s", Folder: "f"}.open(t.Context())
	require.EqualError(t, err, "key access_key of Secret s is not there")
}

func TestBR04DatabasesOfUsersAreTold(t *testing.T) {
	assert.Equal(t, []string{"shop", "test"}, ofUsers([]string{"INFORMATION_SCHEMA", "mysql", "shop", "sys", "test", "lightning_task_info", "METRICS_SCHEMA", "PERFORMANCE_SCHEMA"}))
	assert.True(t, strings.HasSuffix(quote("a`b"), "a``b`"))
}

func TestBR04WhatIsCopiedIsWhatTheSpecNames(t *testing.T) {
	c := Command{Database: Database{Host: "h", Port: 4000, User: "root"}}
	assert.Contains(t, c.dumpArgs("o", ""), everything)
	assert.NotContains(t, c.dumpArgs("o", ""), "--password")
	c.Tables = []string{"a.b"}
	args := c.dumpArgs("o", "p")
	assert.NotContains(t, args, everything)
	assert.Contains(t, strings.Join(args, " "), "--password p --tables-list a.b")
	c.Filters = []string{"shop.*"}
	source, is := c.lightning("from", "p")["mydumper"].(map[string]any)
	require.True(t, is)
	assert.Equal(t, c.Filters, source["filter"])
}

func TestBR04ToolsWorkWithTheThreadsOfTheSpec(t *testing.T) {
	c := Command{Database: Database{Host: "h", Port: 4000, User: "root"}}
	number := func() any {
		own, is := c.lightning("from", "")["lightning"].(map[string]any)
		require.True(t, is)
		return own["region-concurrency"]
	}
	assert.NotContains(t, c.dumpArgs("o", ""), "--threads")
	assert.Nil(t, number())
	c.Threads = 16
	assert.Contains(t, strings.Join(c.dumpArgs("o", ""), " "), "--threads 16")
	assert.Equal(t, 16, number())
}

func TestBR04ToolsKnowTiDBByItsAuthority(t *testing.T) {
	dir := t.TempDir()
	c := Command{Database: Database{Host: "h", Port: 4000, User: "root", TLS: dir, TLSOf: "Secret s"}}
	words := strings.Join(c.dumpArgs("o", ""), " ")
	assert.Contains(t, words, "--ca "+dir+"/ca.crt")
	assert.NotContains(t, words, "--cert")
	database, is := c.lightning("from", "")["tidb"].(map[string]any)
	require.True(t, is)
	assert.Equal(t, map[string]any{"ca-path": dir + "/ca.crt"}, database["security"])

	require.NoError(t, os.WriteFile(filepath.Join(dir, "tls.crt"), nil, 0o600))
	assert.Contains(t, strings.Join(c.dumpArgs("o", ""), " "), "--cert "+dir+"/tls.crt --key "+dir+"/tls.key")

	_, _, err := c.Database.connect(t.Context(), "", time.Second)
	assert.Equal(t, v1alpha1.ReasonCertificateInvalid, resultOf(err, "", false).Reason)
	require.EqualError(t, err, "Secret s: the CA of TiDB's certificate is not there: correct it: the TiDBGroup names it in spec.tls.mysql")
}

func TestParse(t *testing.T) {
	common := []string{"--result=r", "--folder=f", "--volume=v", "--uid=u"}
	c, err := Parse(append([]string{"clean"}, common...))
	require.NoError(t, err)
	assert.Equal(t, VerbClean, c.Verb)
	c, err = Parse(append([]string{"backup", "--host=h", "--tool=t", "--scratch=s", "--table=a.b", "--table=c.d"}, common...))
	require.NoError(t, err)
	assert.Equal(t, []string{"a.b", "c.d"}, c.Tables)
	for words, args := range map[string][]string{
		"want install":         nil,
		"want one of --volume": append([]string{"clean", "--bucket=b"}, common...),
		"want --result":        {"clean", "--volume=v"},
		"clean wants --uid":    {"clean", "--result=r", "--folder=f", "--volume=v"},
		"backup wants --host":  append([]string{"backup"}, common...),
		"--provider azblob and --pd want --credentials": {"clean", "--result=r", "--folder=f", "--bucket=v", "--uid=u", "--provider=azblob", "--account=a"},
		"and --pd want --credentials":                   {"backup", "--result=r", "--folder=f", "--bucket=v", "--uid=u", "--pd=http://p"},
	} {
		_, err := Parse(args)
		assert.ErrorContains(t, err, words)
	}
}

func TestBR04NothingIsRestoredIntoDatabasesOfUsers(t *testing.T) {
	require.NoError(t, checkEmpty(t.Context(), nil, []string{"mysql", "INFORMATION_SCHEMA", "sys", taskSchema}))
	err := checkEmpty(t.Context(), nil, []string{"mysql", "shop"})
	require.ErrorContains(t, err, "the cluster has databases of users: shop")
	assert.Equal(t, v1alpha1.ReasonDatabaseNotEmpty, resultOf(err, "", false).Reason)
	assert.False(t, resultOf(err, "", false).Begun, "it is tried again when they are dropped")
}
