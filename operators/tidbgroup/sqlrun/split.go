package sqlrun

import "strings"

// splitStatements cuts SQL into its statements, as TiDB's lexer sees them: a semicolon in a
// string, a quoted name or a comment ends none. Comments alone are no statement, but
// for those that TiDB runs. It is done here so that the statement that fails can be
// named: of several that are sent together the driver does not report which one did.
// TiDB has no stored procedures, and so there is no DELIMITER.
func splitStatements(sql string) []string {
	sql = strings.TrimPrefix(sql, "\ufeff")
	var out []string
	begin, code := 0, false
	end := func(at int) {
		if code {
			out = append(out, strings.TrimSpace(sql[begin:at]))
		}
		begin, code = at+1, false
	}
	for i := 0; i < len(sql); {
		if sql[i] == ';' {
			end(i)
			i++
			continue
		}
		next := nextToken(sql[i:])
		code = code || next.code
		i += next.size
	}
	end(len(sql))
	return out
}

// piece is the next part of SQL that a semicolon cannot end: its size in bytes, and
// whether there is anything in it to run.
type piece struct {
	size int
	code bool
}

func nextToken(sql string) piece {
	switch {
	case sql[0] == '\'' || sql[0] == '"' || sql[0] == '`':
		return piece{quotedSize(sql), true}
	case sql[0] == '#' || strings.HasPrefix(sql, "--") && (len(sql) == 2 || sql[2] <= ' '):
		return piece{sizeUntil(sql, "\n", 0), false}
	case strings.HasPrefix(sql, "/*"):
		return piece{sizeUntil(sql, "*/", 2), strings.HasPrefix(sql, "/*!") || strings.HasPrefix(sql, "/*T!")}
	}
	return piece{1, sql[0] > ' '}
}

// quotedSize returns the size of a string or of a quoted name. One whose quote is doubled
// goes on as the next one.
func quotedSize(sql string) int {
	quote := sql[0]
	for i := 1; i < len(sql); i++ {
		switch {
		case sql[i] == '\\' && quote != '`':
			i++
		case sql[i] == quote:
			return i + 1
		}
	}
	return len(sql)
}

// sizeUntil returns the size up to and with an end, which is looked for from a place on.
func sizeUntil(sql, end string, from int) int {
	at := strings.Index(sql[from:], end)
	if at < 0 {
		return len(sql)
	}
	return from + at + len(end)
}
