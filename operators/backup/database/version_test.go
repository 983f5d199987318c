package database

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// answers is a database that answers queries with one text each.
type answers map[string]string

func (a answers) Connect(context.Context) (driver.Conn, error) { return a, nil }
func (answers) Driver() driver.Driver                          { return nil }
func (answers) Prepare(string) (driver.Stmt, error)            { return nil, errors.New("no statements") }
func (answers) Begin() (driver.Tx, error)                      { return nil, errors.New("no transactions") }
func (answers) Close() error                                   { return nil }

func (a answers) QueryContext(_ context.Context, query string, _ []driver.NamedValue) (driver.Rows, error) {
	text, known := a[query]
	if !known {
		return nil, errors.New("unknown query " + query)
	}
	return &rows{text: text}, nil
}

// rows are one row with one text.
type rows struct {
	text string
	read bool
}

func (*rows) Columns() []string { return []string{"text"} }
func (*rows) Close() error      { return nil }

func (r *rows) Next(into []driver.Value) error {
	if r.read {
		return io.EOF
	}
	r.read, into[0] = true, r.text
	return nil
}

// TiDB's item server-version has VERSION() say anything, such as what MySQL an application wants.
func TestBR01TheVersionOfAServerIsItsRelease(t *testing.T) {
	for release, want := range map[string]string{
		"Release Version: v7.5.6\nEdition: Community\nGit Commit Hash: 0": "TiDB-v7.5.6",
		"Release Version: v9.0.0-beta.2\nEdition: Community":              "TiDB-v9.0.0-beta.2",
		"None": "None",
	} {
		db := sql.OpenDB(answers{"SELECT VERSION()": "8.0.33", "SELECT TIDB_VERSION()": release})
		version, err := askVersion(t.Context(), db)
		require.NoError(t, err)
		assert.Equal(t, want, version)
		require.NoError(t, db.Close())
	}
	assert.True(t, IsOlder("TiDB-v7.5.6", "8.0.11-TiDB-v8.5.7"), "markers of before have what VERSION() says")
}
