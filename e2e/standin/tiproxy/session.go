package tiproxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dolthub/vitess/go/mysql"
	"github.com/dolthub/vitess/go/sqltypes"
	"github.com/dolthub/vitess/go/vt/vttls"

	"github.com/tidb-groups/tidb-groups/e2e/standin/process"
)

const (
	// connectTimeout bounds a connection to a server, in milliseconds.
	connectTimeout = 5000
	// retryMove is after how long a session is tried to be moved again.
	retryMove = time.Second
)

var (
	errNoServer = errors.New("no TiDB server serves")
	errNoToken  = errors.New("the server signs no token for the session")
)

// session is a client's connection, and that to the server which serves it now.
type session struct {
	mu      sync.Mutex
	user    string
	db      string
	server  *mysql.Conn // nil before the first statement
	address string
	// inTransaction says that the session cannot be moved now.
	inTransaction bool
	// stays is until when the proxy does not try to move the session again.
	stays  time.Time
	closed bool
}

// query runs a statement, on another server if the session's own is about to stop. A
// statement that was sent is never sent again. Where the server has gone, so does the client's
// connection.
func (s *session) query(ctx context.Context, p *Proxy, client *mysql.Conn, text string) (*sqltypes.Result, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.settle(ctx, p); err != nil {
		return nil, err
	}
	result, err := s.server.ExecuteFetch(text, -1, true)
	if err != nil {
		if mysql.IsConnErr(err) {
			p.log.Warn("a server has gone, and a client's connection with it", "server", s.address, "error", err)
			s.leave()
			client.Close()
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
	switch {
	case s.server == nil:
		to := p.choose("")
		if to == "" {
			return errNoServer
		}
		server, err := s.connect(ctx, p, to)
		if err != nil {
			return fmt.Errorf("connect to %s: %w", to, err)
		}
		s.server, s.address = server, to
	case s.inTransaction, p.servers.Healthy()[s.address], time.Now().Before(s.stays):
	default:
		if err := s.change(ctx, p); err != nil {
			// The server still serves those that it has.
			s.stays = time.Now().Add(retryMove)
			p.log.Warn("a connection is not moved", "from", s.address, "error", err)
		}
	}
	return nil
}

// change moves the session to another server, if its own signs a token for it.
func (s *session) change(ctx context.Context, p *Proxy) error {
	to := p.choose(s.address)
	if to == "" {
		return errNoServer
	}
	if err := s.ask(); err != nil {
		return err
	}
	server, err := s.connect(ctx, p, to)
	if err != nil {
		return fmt.Errorf("connect to %s: %w", to, err)
	}
	p.log.Info("a connection is moved", "from", s.address, "to", to)
	s.leave()
	s.server, s.address = server, to
	return nil
}

// ask asks the session's server for a token, as TiProxy does before it moves a session. Without
// a key TiDB answers an error, and from v9.0 on no token.
func (s *session) ask() error {
	states, err := s.server.ExecuteFetch("SHOW SESSION_STATES", 1, true)
	if err != nil {
		return fmt.Errorf("ask for a token: %w", err)
	}
	for n, field := range states.Fields {
		if field.Name == "Session_token" && len(states.Rows) == 1 && states.Rows[0][n].Len() > 0 {
			return nil
		}
	}
	return errNoToken
}

// connect connects the session's user to a server.
func (s *session) connect(ctx context.Context, p *Proxy, to string) (*mysql.Conn, error) {
	host, port, err := net.SplitHostPort(to)
	if err != nil {
		return nil, fmt.Errorf("read address of a server: %w", err)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return nil, fmt.Errorf("read port of a server: %w", err)
	}
	params := &mysql.ConnParams{Host: host, Port: number, Uname: s.user, DbName: s.db, ConnectTimeoutMs: connectTimeout, SslMode: vttls.Disabled}
	if p.files != (process.Files{}) {
		// It knows a server by its CA, and not by its name.
		params.SslMode, params.SslCa, params.SslCert, params.SslKey = vttls.VerifyCA, p.files.CA, p.files.Cert, p.files.Key
	}
	return mysql.Connect(ctx, params)
}

// leave ends the connection to the server.
func (s *session) leave() {
	if s.server != nil {
		s.server.Close()
	}
	s.server, s.address, s.inTransaction, s.stays = nil, "", false, time.Time{}
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
