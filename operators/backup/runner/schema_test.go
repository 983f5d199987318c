package runner

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/backup/failure"
)

// recorder is a database that takes down what it is to execute, and refuses some of it.
type recorder struct {
	executed []string
	refuses  map[string]*mysql.MySQLError
}

func (r *recorder) Connect(context.Context) (driver.Conn, error) { return r, nil }
func (r *recorder) Driver() driver.Driver                        { return nil }
func (r *recorder) Prepare(string) (driver.Stmt, error)          { return nil, driver.ErrSkip }
func (r *recorder) Begin() (driver.Tx, error)                    { return nil, driver.ErrSkip }
func (r *recorder) Close() error                                 { return nil }

func (r *recorder) ExecContext(_ context.Context, text string, _ []driver.NamedValue) (driver.Result, error) {
	text = strings.TrimSpace(text)
	r.executed = append(r.executed, text)
	if err := r.refuses[text]; err != nil {
		return nil, err
	}
	return driver.ResultNoRows, nil
}

// TiDB Lightning makes neither placement policies nor sequences, and fails at a table that names one.
func TestBR04WhatTiDBLightningDoesNotMakeIsMadeBefore(t *testing.T) {
	dir, p := volume(t)
	files := map[string]string{
		"far%2Eaway-placement-policy-create.sql": "POLICY far.away", "here-placement-policy-create.sql": "POLICY here",
		"shop-schema-create.sql": "DATABASE shop", "shop.numbers-schema-sequence.sql": "SEQUENCE numbers",
		"shop.orders-schema.sql": "TABLE orders", "shop.orders.000000000.sql": "ROWS",
	}
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "p/b/data"), 0o700))
	for name, text := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "p/b/data", name), []byte(text), 0o600))
	}
	var log strings.Builder
	load := func(c Command, r *recorder) error {
		c.Scratch, c.Tool = t.TempDir(), tool(t, "exit 0")
		return c.load(t.Context(), p, sql.OpenDB(r), &log, loading{})
	}
	policies := []string{"POLICY far.away", "POLICY here"}
	all := append(slices.Clone(policies), "DATABASE shop", "USE `shop`", "SEQUENCE numbers")

	r := &recorder{}
	require.NoError(t, load(Command{}, r))
	assert.Equal(t, all, r.executed)

	r = &recorder{}
	require.NoError(t, load(Command{Filters: []string{"shop.*"}}, r))
	assert.Empty(t, log.String())
	assert.Equal(t, policies, r.executed, "tables that are chosen may name them")

	r = &recorder{refuses: map[string]*mysql.MySQLError{
		"POLICY here": {Number: 8238, Message: "exists"}, "DATABASE shop": {Number: 1007, Message: "exists"},
		"POLICY far.away": {Number: 1227, Message: "Access denied; you need PLACEMENT_ADMIN"},
	}}
	require.NoError(t, load(Command{}, r), "there may be no table that needs the one that may not be made")
	assert.Contains(t, log.String(), "cannot be restored: execute far%2Eaway-placement-policy-create.sql: Error 1227")
	assert.Equal(t, all, r.executed)

	r = &recorder{refuses: map[string]*mysql.MySQLError{"SEQUENCE numbers": {Number: 1142, Message: "no"}}}
	assert.Equal(t, v1alpha1.ReasonLoginRefused, failure.NewResult(load(Command{}, r), "", true).Reason)
	r = &recorder{refuses: map[string]*mysql.MySQLError{"POLICY here": {Number: 1064, Message: "syntax"}}}
	require.ErrorContains(t, load(Command{}, r), "execute here-placement-policy-create.sql: Error 1064")
}
