package tidb

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"regexp"
	"time"

	"github.com/dolthub/vitess/go/mysql"
	"github.com/dolthub/vitess/go/sqltypes"
	querypb "github.com/dolthub/vitess/go/vt/proto/query"

	"github.com/tidb-groups/tidb-groups/e2e/standin/process"
)

// showStates is what a proxy asks before it moves a session to another server.
var showStates = regexp.MustCompile(`(?is)^\s*SHOW\s+SESSION_STATES\s*;?\s*$`)

// tokenLifetime is how long a token is good for.
const tokenLifetime = time.Minute

// signing is the key that tokens of sessions are signed with. The files are read at each token.
type signing struct{ cert, key string }

func signingOf(doc map[string]any) signing {
	return signing{cert: process.LookupText(doc, "security.session-token-signing-cert", ""), key: process.LookupText(doc, "security.session-token-signing-key", "")}
}

// states answers SHOW SESSION_STATES. There is no token without a key, as with TiDB; but this
// one has no signature, for no stand-in signs anybody in by it.
func (s signing) states(c *mysql.Conn, database string) (*sqltypes.Result, error) {
	if s.cert == "" || s.key == "" {
		return nil, mysql.NewSQLError(mysql.ERUnknownError, mysql.SSUnknownSQLState, "cannot migrate the current session: no certificate or key file to sign the data")
	}
	if _, err := tls.LoadX509KeyPair(s.cert, s.key); err != nil {
		return nil, mysql.NewSQLError(mysql.ERUnknownError, mysql.SSUnknownSQLState, "cannot migrate the current session: %v", err)
	}
	now := time.Now()
	states, err := json.Marshal(map[string]any{"current-db": database})
	if err != nil {
		return nil, fmt.Errorf("encode states: %w", err)
	}
	token, err := json.Marshal(map[string]any{"username": c.User, "sign-time": now, "expire-time": now.Add(tokenLifetime)})
	if err != nil {
		return nil, fmt.Errorf("encode a token: %w", err)
	}
	return &sqltypes.Result{
		Fields: []*querypb.Field{{Name: "Session_states", Type: querypb.Type_VARCHAR}, {Name: "Session_token", Type: querypb.Type_VARCHAR}},
		Rows:   [][]sqltypes.Value{{sqltypes.NewVarChar(string(states)), sqltypes.NewVarChar(string(token))}},
	}, nil
}
