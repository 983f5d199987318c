package runner

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/backup/cluster"
	"github.com/tidb-groups/tidb-groups/operators/backup/database"
	"github.com/tidb-groups/tidb-groups/operators/backup/failure"
	"github.com/tidb-groups/tidb-groups/operators/backup/storage"
	"github.com/tidb-groups/tidb-groups/shared/testkit/loopback"
	"github.com/tidb-groups/tidb-groups/shared/testkit/objectstore"
)

// The paths of PD that are asked, and told what to undo.
const (
	safePointsPath = "/pd/api/v1/gc/safepoint"
	schedulersPath = "/pd/api/v1/schedulers"
)

// pdOf is a PD with what BR leaves in it.
type pdOf struct {
	points []cluster.SafePoint
	paused []string
	calls  []string
}

func (p *pdOf) serve(t *testing.T) string {
	t.Helper()
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, what any) { assert.NoError(t, json.NewEncoder(w).Encode(what)) }
	mux.HandleFunc("GET "+safePointsPath, func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{"service_gc_safe_points": p.points})
	})
	mux.HandleFunc("DELETE "+safePointsPath+"/{id}", func(_ http.ResponseWriter, r *http.Request) {
		p.points = slices.DeleteFunc(p.points, func(s cluster.SafePoint) bool { return s.ServiceID == r.PathValue("id") })
	})
	mux.HandleFunc("GET "+schedulersPath, func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "paused", r.URL.Query().Get("status"))
		answer(w, p.paused)
	})
	mux.HandleFunc("POST "+schedulersPath+"/{name}", func(_ http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		p.calls = append(p.calls, r.PathValue("name")+" "+string(text))
		p.paused = slices.DeleteFunc(p.paused, func(s string) bool { return s == r.PathValue("name") })
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL
}

// others is what others have in PD.
func others() []cluster.SafePoint {
	return []cluster.SafePoint{{ServiceID: "gc_worker", SafePoint: 10}, {ServiceID: "ticdc", SafePoint: 41}, {ServiceID: "br-of-another", SafePoint: 40}, {ServiceID: "br-of-before", SafePoint: 12}}
}

// physical is a command of a physical run, and its storage.
func physical(t *testing.T, pd *pdOf) (Command, *storage.Place, server) {
	t.Helper()
	s := serve(t)
	st := s.storage(t)
	p, err := st.Open(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, p.Blobs.Close()) })
	return Command{UID: "u", Tool: "/br", Scratch: t.TempDir(), Storage: st, Cluster: cluster.Cluster{PD: pd.serve(t), Concurrency: "8", RateLimit: "100", Checksum: "true"}}, p, s
}

func TestBR01NothingOfAPhysicalBackupStaysInPD(t *testing.T) {
	for name, c := range map[string]struct {
		ends  error
		words string
	}{
		"it is complete": {nil, ""},
		"it fails":       {errors.New("exit status 1"), "Error: [BR:KV:ErrKVStorage]tikv storage occur I/O error: AccessDenied (exit status 1)"},
		"it is stopped":  {context.Canceled, "the run was asked to stop"},
	} {
		t.Run(name, func(t *testing.T) {
			pd := &pdOf{points: others(), paused: []string{"of-another"}}
			command, p, s := physical(t, pd)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var args []string
			command.Start = func(_ context.Context, tool Process) error {
				args = tool.Args
				assert.Contains(t, tool.Env, logToTerminal)
				pd.points = append(pd.points, cluster.SafePoint{ServiceID: "br-ours", SafePoint: 41})
				pd.paused = append(pd.paused, "balance-leader-scheduler")
				data := filepath.Join(s.dir, "copies", "prod", "monday", "data")
				assert.NoError(t, os.MkdirAll(data, 0o700))
				assert.NoError(t, os.WriteFile(filepath.Join(data, "backupmeta"), []byte("12345"), 0o600))
				if c.ends != nil {
					_, _ = fmt.Fprintln(tool.Out, "Error: [BR:KV:ErrKVStorage]tikv storage occur I/O error: AccessDenied")
				}
				if errors.Is(c.ends, context.Canceled) {
					cancel()
				}
				return c.ends
			}
			begun := storage.Marker{UID: "u", Server: "v8", TSO: "42", Physical: true}
			require.NoError(t, p.Begin(t.Context(), begun))
			m, err := command.copyStores(ctx, p, io.Discard, begun)
			assert.Equal(t, others(), pd.points, "those of others stay")
			assert.Equal(t, []string{"of-another"}, pd.paused)
			assert.Equal(t, []string{`balance-leader-scheduler {"delay":0}`}, pd.calls)
			address := strings.TrimPrefix(command.Cluster.PD, "http://")
			assert.Equal(t, []string{"backup", "full", "--use-checkpoint=false", "--backupts", "42", "--storage", p.URL(), "--pd", address, "--concurrency=8", "--ratelimit=100", "--checksum=true"}, args)
			if c.ends == nil {
				require.NoError(t, err)
				assert.Equal(t, storage.Marker{UID: "u", Server: "v8", TSO: "42", Physical: true, Complete: true, Bytes: 5}, m)
				return
			}
			require.EqualError(t, err, c.words)
			require.NoError(t, p.RemoveFailedAttempt(ctx, begun))
			assert.Empty(t, objectstore.Files(t, filepath.Join(s.dir, "copies")))
		})
	}
}

// A run is not failed for what PD forgets by itself.
func TestBR01APhysicalBackupStaysCompleteWithoutPD(t *testing.T) {
	var log bytes.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	begin := time.Now()
	cluster.Cluster{PD: "http://" + loopback.Address(t)}.RemoveLeftovers(ctx, &log, func(cluster.SafePoint) bool { return true }, nil)
	assert.Contains(t, log.String(), "what BR has left in PD could not be removed, and passes after five minutes")
	assert.Less(t, time.Since(begin), time.Minute, "it ends before its context")
}

func TestBR01OnlyTablesOfTheSpecAreCopied(t *testing.T) {
	assert.Empty(t, Command{}.tableFilters())
	assert.Equal(t, []string{"`a-b`.*"}, Command{Databases: []string{"a-b"}}.tableFilters())
	assert.Equal(t, []string{"`a`.`b`"}, Command{Tables: []string{"a.b"}}.tableFilters())
	assert.Equal(t, []string{"*.*", everything}, Command{AllowNonEmpty: true}.tableFilters(), "BR wants an empty cluster otherwise")
	assert.Equal(t, []string{"x.*"}, Command{AllowNonEmpty: true, Filters: []string{"x.*"}}.tableFilters())
	p := &storage.Place{Storage: storage.Storage{Bucket: "b", Folder: "f"}}
	args := strings.Join(Command{Cluster: cluster.Cluster{PD: "https://pd:2379", TLS: "/tls"}}.leadArgs(p, "threads"), " ")
	assert.Contains(t, args, "--pd pd:2379")
	assert.Contains(t, args, "--ca /tls/ca.crt --cert /tls/tls.crt --key /tls/tls.key")
}

// By default BR replaces users and passwords by those of the backup, that of root too, also before a
// log; and goes on with a restore to the same moment that has failed, whatever was dropped since.
func TestBR01ARestoreOfStoresLeavesUsersAndIsNotContinued(t *testing.T) {
	c := Command{Cluster: cluster.Cluster{PD: "http://pd:2379"}}
	p := &storage.Place{Storage: storage.Storage{Bucket: "b", Folder: "f"}}
	l := p.WithFolder("log")
	assert.Equal(t, []string{"restore", "point", "--with-sys-table=false", "--use-checkpoint=false", "--pd", "pd:2379", "--storage", l.URL(), "--full-backup-storage", p.URL(), "--restored-ts", "7"}, c.pointArgs(p, l, "7"))
	assert.Equal(t, []string{"restore", "full", "--with-sys-table=false", "--use-checkpoint=false", "--storage", p.URL(), "--pd", "pd:2379"}, restoreArgs("full", c.leadArgs(p, "threads")))
}

// BR refuses a cluster with the database of TiDB Lightning, and before a log every one that is not
// empty. That is found out before anything is written, so that the run is tried again.
func TestBR01WhatBRRefusesIsRefusedBeforeItRuns(t *testing.T) {
	logical, stores := Command{AllowNonEmpty: true}, Command{AllowNonEmpty: true, Cluster: cluster.Cluster{PD: "http://pd:2379"}}
	assert.False(t, logical.needsEmpty())
	assert.False(t, stores.needsEmpty())
	stores.Log.Folder = "log"
	assert.True(t, stores.needsEmpty())
	has := []string{"mysql", database.TaskSchema}
	require.NoError(t, database.CheckEmpty(t.Context(), nil, has, logical.ignored()...))
	require.ErrorContains(t, database.CheckEmpty(t.Context(), nil, has, stores.ignored()...), "the cluster has databases of users: lightning_task_info")
}

// BR before v7.6 refuses to run with the flag that it is called by since.
func TestBR01TheThreadsOfARestoreAreCalledAsTheVersionDoes(t *testing.T) {
	for server, flag := range map[string]string{
		"8.0.11-TiDB-v7.1.0": "concurrency",
		"8.0.11-TiDB-v7.5.6": "concurrency",
		"8.0.11-TiDB-v7.6.0": "tikv-max-restore-concurrency",
		"8.0.11-TiDB-v8.5.7": "tikv-max-restore-concurrency",
	} {
		assert.Equal(t, flag, threadsFlag(server), server)
	}
}

func TestBR01ABackupIsNotReadByAnOlderVersion(t *testing.T) {
	for _, c := range []struct {
		server, than string
		older        bool
	}{
		{"8.0.11-TiDB-v8.1.0", "8.0.11-TiDB-v8.5.7", true},
		{"8.0.11-TiDB-v8.5.1", "8.0.11-TiDB-v8.5.7", false},
		{"8.0.11-TiDB-v9.0.0", "8.0.11-TiDB-v8.5.7", false},
		{"8.0.11-TiDB-v8.10.0", "8.0.11-TiDB-v8.9.0", false},
		{"8.0.31", "8.0.11-TiDB-v8.5.7", false},
	} {
		assert.Equal(t, c.older, database.IsOlder(c.server, c.than), c.server)
	}
	m := &storage.Marker{Physical: true}
	require.NoError(t, checkType(m, true))
	r := failure.NewResult(checkType(m, false), "", false)
	assert.Equal(t, v1alpha1.ReasonBackupUnreadable, r.Reason)
	assert.Equal(t, "the backup is Physical, and not Logical: create another Restore, with spec.type Physical", r.Message)
	assert.Equal(t, v1alpha1.ReasonDatabaseNotEmpty, failure.OfTool("Error: [BR:Restore:ErrRestoreNotFreshCluster]cluster is not fresh"))

	err := checkVersion(&storage.Marker{Server: "8.0.11-TiDB-v8.5.7"}, "8.0.11-TiDB-v8.1.0")
	assert.Equal(t, v1alpha1.ReasonBackupUnreadable, failure.NewResult(err, "", false).Reason)
}
