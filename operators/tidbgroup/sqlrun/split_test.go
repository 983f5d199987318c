package sqlrun

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDB10AStatementEndsWhereTiDBSeesItsEnd(t *testing.T) {
	for name, c := range map[string]struct {
		sql  string
		want []string
	}{
		"one":                          {"SELECT 1", []string{"SELECT 1"}},
		"two, and blanks":              {" SELECT 1 ;\n\n SELECT\n 2 ; ", []string{"SELECT 1", "SELECT\n 2"}},
		"none":                         {" \n;; \t;", nil},
		"comments alone":               {"-- a;\n# b;\n/* c; */;\n--", nil},
		"a comment before and behind":  {"-- why; not\nSELECT 1 -- because; of\n;# b", []string{"-- why; not\nSELECT 1 -- because; of"}},
		"a comment within":             {"SELECT /* ; ' */ 1; SELECT 2", []string{"SELECT /* ; ' */ 1", "SELECT 2"}},
		"a comment that is run":        {"/*!40101 SET NAMES utf8mb4 */;\n/*T![clustered_index] SELECT 1 */;", []string{"/*!40101 SET NAMES utf8mb4 */", "/*T![clustered_index] SELECT 1 */"}},
		"two dashes are no comment":    {"SELECT 1--1; SELECT 2", []string{"SELECT 1--1", "SELECT 2"}},
		"two dashes and the end":       {"SELECT 1;\n--", []string{"SELECT 1"}},
		"a semicolon in a string":      {"INSERT INTO t VALUES ('a;b', \"c;d\"); SELECT 2", []string{"INSERT INTO t VALUES ('a;b', \"c;d\")", "SELECT 2"}},
		"a semicolon in a name":        {"SELECT `a;b`; SELECT 2", []string{"SELECT `a;b`", "SELECT 2"}},
		"quotes that are escaped":      {`SELECT 'it\'s;'; SELECT "\";"; SELECT '\\'; SELECT 2`, []string{`SELECT 'it\'s;'`, `SELECT "\";"`, `SELECT '\\'`, "SELECT 2"}},
		"quotes that are doubled":      {"SELECT 'it''s;'; SELECT `a``;`; SELECT 2", []string{"SELECT 'it''s;'", "SELECT `a``;`", "SELECT 2"}},
		"a backslash in a name":        {"SELECT `a\\`; SELECT 2", []string{"SELECT `a\\`", "SELECT 2"}},
		"quotes of the other kind":     {`SELECT "it's"; SELECT '"'; SELECT 2`, []string{`SELECT "it's"`, `SELECT '"'`, "SELECT 2"}},
		"a quote that does not end":    {"SELECT 1; SELECT 'a; SELECT 2", []string{"SELECT 1", "SELECT 'a; SELECT 2"}},
		"a comment that does not end":  {"SELECT 1; /* SELECT 2;", []string{"SELECT 1"}},
		"an escape at the very end":    {`SELECT '\`, []string{`SELECT '\`}},
		"a comment of three bytes":     {"/*/ SELECT 1; */ SELECT 2", []string{"/*/ SELECT 1; */ SELECT 2"}},
		"a mark of the order of bytes": {"\ufeffSELECT 1;", []string{"SELECT 1"}},
		"lines of Windows":             {"SELECT 1;\r\n-- x\r\nSELECT 2;\r\n", []string{"SELECT 1", "-- x\r\nSELECT 2"}},
		"letters of other scripts":     {"SELECT 'ж;密'; SELECT 2", []string{"SELECT 'ж;密'", "SELECT 2"}},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, splitStatements(c.sql)) })
	}
}

func FuzzSplit(f *testing.F) {
	for _, seed := range []string{"SELECT 1; SELECT 2", `'\`, "--", "/*", "`;", "a;;b", "\ufeff;"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, sql string) {
		all := splitStatements(sql)
		rest := sql
		for _, one := range all {
			require.NotEmpty(t, one)
			require.Contains(t, rest, one, "each is there as it is, in order")
			_, rest, _ = strings.Cut(rest, one)
			require.Equal(t, []string{one}, splitStatements(one), "it is one")
		}
	})
}
