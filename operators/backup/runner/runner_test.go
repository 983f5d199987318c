package runner

import (
	"bytes"
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
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
	"github.com/tidb-groups/tidb-groups/operators/backup/database"
	"github.com/tidb-groups/tidb-groups/operators/backup/failure"
	"github.com/tidb-groups/tidb-groups/operators/backup/result"
	"github.com/tidb-groups/tidb-groups/operators/backup/storage"
	"github.com/tidb-groups/tidb-groups/shared/testkit/objectstore"
)

// tool is a program that plays a tool.
func tool(t *testing.T, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tool")
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o700)) //nolint:gosec // it is run
	return path
}

func TestBR04ABackupIsCompleteOnlyWithItsPosition(t *testing.T) {
	dir, p := volume(t)
	c := Command{UID: "u", Scratch: t.TempDir(), Storage: p.Storage}
	writes := `for a; do case "$before" in --output) d=$a;; esac; before=$a; done; mkdir -p "$d"; echo x >"$d/t.sql"; `
	c.Tool = tool(t, writes+`printf 'SHOW MASTER STATUS:\n\tLog: tidb-binlog\n\tPos: 42\n' >"$d/metadata"`)
	require.NoError(t, p.Begin(t.Context(), storage.Marker{UID: "u", Server: "v8"}))
	m, err := c.dump(t.Context(), p, io.Discard, storage.Marker{UID: "u", Server: "v8"}, "secret")
	require.NoError(t, err)
	assert.Equal(t, storage.Marker{UID: "u", Complete: true, Server: "v8", TSO: "42", TimeZone: "+00:00", Bytes: m.Bytes}, m)
	assert.Positive(t, m.Bytes)
	read, err := p.Marker(t.Context())
	require.NoError(t, err)
	assert.Equal(t, &m, read)

	require.NoError(t, os.RemoveAll(filepath.Join(dir, "p")))
	c.Tool = tool(t, writes+`echo nothing >"$d/metadata"`)
	_, err = c.dump(t.Context(), p, io.Discard, storage.Marker{UID: "u", Server: "v8"}, "")
	require.ErrorContains(t, err, "no position")
	assert.NotContains(t, objectstore.Files(t, dir), "p/b/backup.json")
}

func TestBR04AToolIsStoppedAndItsLastOutputIsReported(t *testing.T) {
	c := Command{Scratch: t.TempDir()}
	var log bytes.Buffer
	c.Tool = tool(t, `echo "[INFO] begins"; echo "dump failed: write: no space left on device" >&2; echo "  at main.go:7"; exit 1`)
	err := c.runTool(t.Context(), &log, nil, nil)
	r := failure.NewResult(err, "", true, "write")
	assert.Equal(t, result.Result{Reason: v1alpha1.ReasonStorageFull, Message: "dump failed: ***: no space left on device (exit status 1)", Begun: true}, r)
	assert.Contains(t, log.String(), "begins")

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c.Tool = tool(t, `trap 'kill $!; echo it ends by itself; exit 1' TERM; sleep 600 >/dev/null 2>&1 & echo it runs; wait`)
	require.ErrorContains(t, c.runTool(ctx, heard{&log, cancel}, nil, nil), "asked to stop")
	assert.Contains(t, log.String(), "it ends by itself", "it is not killed at once")
}

// heard calls a function when something is written.
type heard struct {
	io.Writer
	call func()
}

func (h heard) Write(text []byte) (int, error) {
	h.call()
	return h.Writer.Write(text)
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
		assert.Equal(t, reason, failure.OfTool(words), words)
	}
	p := &storage.Place{Storage: storage.Storage{Bucket: "b", CredentialsOf: "Secret s", Endpoint: "http://e"}}
	for reason, err := range map[string]error{
		v1alpha1.ReasonStorageFull:        fmt.Errorf("write: %w", syscall.ENOSPC),
		v1alpha1.ReasonBucketMissing:      &smithy.GenericAPIError{Code: "NoSuchBucket"},
		v1alpha1.ReasonStorageRefused:     &smithy.GenericAPIError{Code: "SignatureDoesNotMatch"},
		v1alpha1.ReasonStorageUnreachable: &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED},
		v1alpha1.ReasonRunFailed:          errors.New("x"),
	} {
		assert.Equal(t, reason, failure.NewResult(p.WrapError("look into", err), "", false).Reason)
	}
	_, err := storage.Storage{Bucket: "b", Credentials: t.TempDir(), CredentialsOf: "Secret s", Folder: "f"}.Open(t.Context())
	require.EqualError(t, err, "key access_key of Secret s is not there")
}

func TestBR04OnlyTablesOfTheSpecAreCopied(t *testing.T) {
	c := Command{Database: database.Server{Host: "h", Port: 4000, User: "root"}}
	assert.Contains(t, c.dumpArgs("o", ""), everything)
	assert.NotContains(t, c.dumpArgs("o", ""), "--password")
	c.Tables = []string{"a.b"}
	args := c.dumpArgs("o", "p")
	assert.NotContains(t, args, everything)
	assert.Contains(t, strings.Join(args, " "), "--password p --tables-list a.b")
	c.Filters = []string{"shop.*"}
	source, is := c.lightningConfig("from", loading{password: "p"})["mydumper"].(map[string]any)
	require.True(t, is)
	assert.Equal(t, c.Filters, source["filter"])
}

// Dumpling divides each --filter at its commas, as a line of CSV.
func TestBR04AFilterMayHaveACommaOrAQuotationMark(t *testing.T) {
	filters := []string{"shop.*", `/^t[0-9]{1,3}$/.*`, `"a,""b".*`, "`a,b`.*"}
	c := Command{Database: database.Server{Host: "h", Port: 4000, User: "root"}, Filters: filters}
	var read []string
	args := c.dumpArgs("o", "")
	for i, arg := range args {
		if arg == "--filter" {
			fields, err := csv.NewReader(strings.NewReader(args[i+1])).Read()
			require.NoError(t, err)
			read = append(read, fields...)
		}
	}
	assert.Equal(t, filters, read)
	assert.Contains(t, args, "shop.*")
	assert.Contains(t, strings.Join(c.leadArgs(&storage.Place{}, "concurrency"), " "), filters[1], "BR does not")
}

// The text of a TIMESTAMP is read as it was written, whatever the time zones of the two databases are. An older
// backup is in that of its database.
func TestBR04TimesAreReadInTheTimeZoneThatTheyWereWrittenIn(t *testing.T) {
	c := Command{Database: database.Server{Host: "h", Port: 4000, User: "root"}}
	assert.Contains(t, strings.Join(c.dumpArgs("o", ""), " "), "--params time_zone=+00:00")
	dir, p := volume(t)
	write := `mkdir -p "` + filepath.Join(dir, "p/b/data") + `"; echo "	Pos: 42" >"` + filepath.Join(dir, "p/b/data/metadata") + `"`
	c.UID, c.Scratch, c.Tool = "u", t.TempDir(), tool(t, write)
	require.NoError(t, p.Begin(t.Context(), storage.Marker{UID: "u"}))
	m, err := c.dump(t.Context(), p, io.Discard, storage.Marker{UID: "u"}, "")
	require.NoError(t, err)
	assert.Equal(t, "+00:00", m.TimeZone)
	database, is := c.lightningConfig("from", loading{zone: m.TimeZone})["tidb"].(map[string]any)
	require.True(t, is)
	assert.Equal(t, map[string]any{"time_zone": "+00:00"}, database["session-vars"])
	database, is = c.lightningConfig("from", loading{})["tidb"].(map[string]any)
	require.True(t, is)
	assert.NotContains(t, database, "session-vars")
}

// TiDB makes a new number of a 0 in a column with AUTO_INCREMENT, unless it is told not to. Of TiDB Lightning's
// default the rest stays.
func TestBR04ARowWithTheNumber0KeepsIt(t *testing.T) {
	database, is := Command{}.lightningConfig("from", loading{})["tidb"].(map[string]any)
	require.True(t, is)
	assert.Equal(t, "ONLY_FULL_GROUP_BY,NO_AUTO_CREATE_USER,NO_AUTO_VALUE_ON_ZERO", database["sql-mode"])
}

func TestBR04ToolsWorkWithTheThreadsOfTheSpec(t *testing.T) {
	c := Command{Database: database.Server{Host: "h", Port: 4000, User: "root"}}
	number := func() any {
		own, is := c.lightningConfig("from", loading{})["lightning"].(map[string]any)
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
	c := Command{Database: database.Server{Host: "h", Port: 4000, User: "root", TLS: dir, TLSOf: "Secret s"}}
	words := strings.Join(c.dumpArgs("o", ""), " ")
	assert.Contains(t, words, "--ca "+dir+"/ca.crt")
	assert.NotContains(t, words, "--cert")
	database, is := c.lightningConfig("from", loading{})["tidb"].(map[string]any)
	require.True(t, is)
	assert.Equal(t, map[string]any{"ca-path": dir + "/ca.crt"}, database["security"])

	assert.NotContains(t, database, "tls")

	require.NoError(t, os.WriteFile(filepath.Join(dir, "tls.crt"), nil, 0o600))
	assert.Contains(t, strings.Join(c.dumpArgs("o", ""), " "), "--cert "+dir+"/tls.crt --key "+dir+"/tls.key")

	_, _, err := c.Database.Connect(t.Context(), "", time.Second)
	assert.Equal(t, v1alpha1.ReasonCertificateInvalid, failure.NewResult(err, "", false).Reason)
	require.EqualError(t, err, "Secret s: the CA of TiDB's certificate is not there: correct it: the TiDBGroup names it in spec.tls.mysql")
}

// A server may want TLS although the group names no certificate: TiDB can make its own. Dumpling and the
// program use TLS then by themselves.
func TestBR04TiDBLightningUsesTLSWhereTiDBOffersIt(t *testing.T) {
	c := Command{Database: database.Server{Host: "h", Port: 4000, User: "root"}}
	database, is := c.lightningConfig("from", loading{})["tidb"].(map[string]any)
	require.True(t, is)
	assert.Equal(t, "preferred", database["tls"])
	assert.NotContains(t, database, "security")
}

// unreachable is a database that does not answer.
type unreachable struct{}

func (unreachable) Connect(context.Context) (driver.Conn, error) { return nil, errors.New("no answer") }
func (unreachable) Driver() driver.Driver                        { return nil }

// A Restore that has written everything has not failed: the user would drop all of it again.
func TestBR04ARestoreDoesNotFailOfWhatTiDBLightningLeaves(t *testing.T) {
	_, p := volume(t)
	var log bytes.Buffer
	c := Command{Scratch: t.TempDir(), Filters: []string{"*.*"}, Tool: tool(t, "exit 0")}
	require.NoError(t, c.loadAll(t.Context(), p, sql.OpenDB(unreachable{}), &log, loading{tidy: true}))
	assert.Contains(t, log.String(), "database lightning_task_info, which TiDB Lightning has made, could not be dropped: ")
	log.Reset()
	require.NoError(t, c.loadAll(t.Context(), p, sql.OpenDB(unreachable{}), &log, loading{}))
	assert.Empty(t, log.String(), "it was there before")
	c.Tool = tool(t, "exit 1")
	require.Error(t, c.loadAll(t.Context(), p, sql.OpenDB(unreachable{}), &log, loading{tidy: true}))
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
