package runner

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/backup/result"
	"github.com/tidb-groups/tidb-groups/operators/backup/storage"
)

// clock is a database that tells the time stamp 50 and nothing else, and notes what it is told to do.
type clock struct {
	told    bool
	orders  *[]string
	refuses error
}

func (c *clock) Connect(context.Context) (driver.Conn, error) {
	return &clock{orders: c.orders, refuses: c.refuses}, nil
}

func (c *clock) ExecContext(_ context.Context, query string, _ []driver.NamedValue) (driver.Result, error) {
	if c.orders != nil {
		*c.orders = append(*c.orders, query)
	}
	return driver.ResultNoRows, c.refuses
}

func (c *clock) Driver() driver.Driver               { return nil }
func (c *clock) Prepare(string) (driver.Stmt, error) { return nil, driver.ErrSkip }
func (c *clock) Begin() (driver.Tx, error)           { return c, nil }
func (c *clock) Commit() error                       { return nil }
func (c *clock) Rollback() error                     { return nil }
func (c *clock) Close() error                        { return nil }
func (c *clock) Columns() []string                   { return []string{"@@tidb_current_ts"} }

func (c *clock) QueryContext(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	return &clock{}, nil
}

func (c *clock) Next(row []driver.Value) error {
	if c.told {
		return io.EOF
	}
	row[0], c.told = "50", true
	return nil
}

// started is a store as PD lists it.
func started(id, at int, engine string) map[string]any {
	store := map[string]any{"id": id, "address": fmt.Sprintf("s-%d:20160", id), "start_timestamp": at}
	if engine != "" {
		store["labels"] = []map[string]string{{"key": "engine", "value": engine}}
	}
	return map[string]any{"store": store}
}

// BR switches garbage collection of every TiKV off while it restores a log, which it writes in no
// order. A TiKV that starts meanwhile has its own configuration again, and drops what it must not.
func TestBR01ALogIsNotRestoredWhereATiKVHasStartedMeanwhile(t *testing.T) {
	before := []map[string]any{started(1, 10, ""), started(2, 20, ""), started(3, 30, "tiflash")}
	for name, of := range map[string]struct {
		after []map[string]any
		words string
	}{
		"nothing started":        {before, ""},
		"a TiKV is gone":         {before[1:], ""},
		"a TiFlash has started":  {[]map[string]any{before[0], before[1], started(3, 31, "tiflash")}, ""},
		"a TiKV has started":     {[]map[string]any{before[0], started(2, 21, ""), before[2]}, "TiKV s-2:20160 has started"},
		"a TiKV is new":          {append([]map[string]any{started(4, 40, "")}, before...), "TiKV s-4:20160 has started"},
		"PD answers with errors": {nil, "list stores of PD"},
	} {
		t.Run(name, func(t *testing.T) {
			c, br, _ := keeping(t)
			p, err := c.Storage.Open(t.Context())
			require.NoError(t, err)
			defer func() { assert.NoError(t, p.Blobs.Close()) }()
			require.NoError(t, p.WithFolder("prod/log").ClaimLog(t.Context(), "l"))
			c.Log = Log{Folder: "prod/log"}
			there := before
			c.Cluster.PD = withStores(t, func() []map[string]any { return there })
			c.Start = func(ctx context.Context, tool Process) error {
				if tool.Args[1] == "metadata" {
					_, err := fmt.Fprintln(tool.Out, "[log-min-ts=10] [log-max-ts=99]")
					return err
				}
				there = of.after
				return br.run(ctx, tool)
			}
			out, err := c.restorePoint(t.Context(), p, sql.OpenDB(&clock{}), io.Discard, &storage.Marker{TSO: "42", Bytes: 5})
			assert.Equal(t, []string{"point"}, br.calls)
			if of.words == "" {
				require.NoError(t, err)
				assert.Equal(t, result.Result{Bytes: 5, TSO: "99"}, out)
				return
			}
			require.ErrorIs(t, err, errBegun)
			assert.True(t, out.Begun)
			assert.Equal(t, v1alpha1.ReasonRunFailed, out.Reason)
			assert.Contains(t, out.Message, of.words)
		})
	}
}

// BR of v8.5.5 notes its restores in the cluster, and one that was killed stays there: it refuses to restore to
// another moment then ("existing task has different restoredTS", Registry.resolveRestoreTS of its
// pkg/registry), or the same tables otherwise, also after the databases were dropped.
func TestBR01ARestoreThatWasKilledKeepsNoOtherFromBeginning(t *testing.T) {
	const forget = "DELETE FROM mysql.tidb_restore_registry"
	for name, of := range map[string]struct {
		allows  bool
		log     string
		refuses error
		orders  []string
		says    string
	}{
		"an empty cluster":                 {false, "", nil, []string{forget}, ""},
		"before a log, which BR wants so":  {true, "prod/log", nil, []string{forget}, ""},
		"one where others may be restored": {true, "", nil, nil, ""},
		"a cluster that notes nothing":     {false, "", &mysql.MySQLError{Number: 1146, Message: "Table 'mysql.tidb_restore_registry' doesn't exist"}, []string{forget}, ""},
		"a user who may not":               {false, "", &mysql.MySQLError{Number: 1142, Message: "DELETE command denied"}, []string{forget}, "DELETE command denied"},
	} {
		t.Run(name, func(t *testing.T) {
			c, br, _ := keeping(t)
			c.AllowNonEmpty, c.Log = of.allows, Log{Folder: of.log}
			c.Cluster.PD = withStores(t, func() []map[string]any { return nil })
			p, err := c.Storage.Open(t.Context())
			require.NoError(t, err)
			defer func() { assert.NoError(t, p.Blobs.Close()) }()
			var orders []string
			c.Start = func(ctx context.Context, tool Process) error {
				assert.Equal(t, of.orders, orders, "before BR begins")
				return br.run(ctx, tool)
			}
			said := &strings.Builder{}
			_, err = c.leadRestore(t.Context(), p, sql.OpenDB(&clock{orders: &orders, refuses: of.refuses}), said, restoreArgs("point", nil))
			require.NoError(t, err, "BR says what it thinks of it")
			assert.Equal(t, []string{"point"}, br.calls)
			if of.says == "" {
				assert.Empty(t, said.String())
			}
			assert.Contains(t, said.String(), of.says)
		})
	}
}

// withStores is a PD that lists stores; nil if it cannot.
func withStores(t *testing.T, stores func() []map[string]any) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/pd/api/v1/schedulers", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("[]")) })
	mux.HandleFunc("/pd/api/v1/gc/safepoint", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) })
	mux.HandleFunc("GET /pd/api/v1/stores", func(w http.ResponseWriter, _ *http.Request) {
		if stores() == nil {
			http.Error(w, "no leader", http.StatusServiceUnavailable)
			return
		}
		assert.NoError(t, json.NewEncoder(w).Encode(map[string]any{"stores": stores()}))
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL
}
