package tiproxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"

	"github.com/dolthub/vitess/go/mysql"
	"github.com/dolthub/vitess/go/sqltypes"
	"github.com/dolthub/vitess/go/vt/vttls"

	"github.com/tidb-groups/tidb-groups/e2e/standin/process"
)

// connectTimeout bounds a connection to a server, in milliseconds.
const connectTimeout = 5000

var errNoServer = errors.New("no TiDB server serves")

// session is a client's connection, and that to the server which serves it now.
type session struct {
	mu      sync.Mutex
	user    string
	db      string
	server  *mysql.Conn // nil before the first statement, and when the server has gone
	address string
	// inTransaction says that the session cannot be moved now.
	inTransaction bool
	closed        bool
}

// query runs a statement, on another server if the session's own is about to stop. A
// statement that was sent is never sent again.
func (s *session) query(ctx context.Context, p *Proxy, text string) (*sqltypes.Result, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.settle(ctx, p); err != nil {
		return nil, err
	}
	result, err := s.server.ExecuteFetch(text, -1, true)
	if err != nil {
		if mysql.IsConnErr(err) {
			s.leave()
		}
		return nil, err
	}
	switch upper := strings.ToUpper(strings.TrimSpace(text)); {
	case strings.HasPrefix(upper, "BEGIN"), strings.HasPrefix(upper, "START TRANSACTION"):
		s.inTransaction = true
	case strings.HasPrefix(upper, "COMMIT"), strings.HasPrefix(upper, "ROLLBACK"):
		s.inTransaction = false
	}
	return result, nil
}

// settle connects the session to a server that serves, unless it has one or must stay.
func (s *session) settle(ctx context.Context, p *Proxy) error {
	if s.server != nil && (s.inTransaction || p.servers.Healthy()[s.address]) {
		return nil
	}
	to := p.choose(s.address)
	if to == "" {
		if s.server != nil {
			return nil // it still serves those that it has
		}
		return errNoServer
	}
	host, port, err := net.SplitHostPort(to)
	if err != nil {
		return fmt.Errorf("read address of a server: %w", err)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return fmt.Errorf("read port of a server: %w", err)
	}
	params := &mysql.ConnParams{Host: host, Port: number, Uname: s.user, DbName: s.db, ConnectTimeoutMs: connectTimeout, SslMode: vttls.Disabled}
	if p.files != (process.Files{}) {
		// It knows a server by its CA, and not by its name.
		params.SslMode, params.SslCa, params.SslCert, params.SslKey = vttls.VerifyCA, p.files.CA, p.files.Cert, p.files.Key
	}
	server, err := mysql.Connect(ctx, params)
	if err != nil {
		if s.server != nil {
			return nil
		}
		return fmt.Errorf("connect to %s: %w", to, err)
	}
	if s.server != nil {
		p.log.Info("a connection is moved", "from", s.address, "to", to)
	}
	s.leave()
	s.server, s.address = server, to
	return nil
}

// leave ends the connection to the server.
func (s *session) leave() {
	if s.server != nil {
		s.server.Close()
	}
	s.server, s.address, s.inTransaction = nil, "", false
}

// move moves a session that is idle off a server that is about to stop.
func (s *session) move(ctx context.Context, p *Proxy) {
	if !s.mu.TryLock() {
		return // its next statement moves it
	}
	defer s.mu.Unlock()
	if s.closed || s.server == nil {
		return
	}
	if err := s.settle(ctx, p); err != nil {
		p.log.Warn("a connection is not moved", "error", err)
	}
}
