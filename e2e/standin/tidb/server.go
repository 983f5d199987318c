package tidb

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/dolthub/go-mysql-server/server"
	"github.com/pingcap/kvproto/pkg/metapb"
	"github.com/pingcap/kvproto/pkg/pdpb"
	"github.com/sirupsen/logrus"

	"github.com/tidb-groups/tidb-groups/e2e/model/settings"
	"github.com/tidb-groups/tidb-groups/e2e/standin/process"
)

// drainTimeout bounds how long running statements may hold the end up.
const drainTimeout = 10 * time.Second

// errNoStore is what a TiDB without TiKV waits on.
var errNoStore = errors.New("no TiKV store is up and can be reached")

// QuietLibraries makes the SQL engine's own log quiet and marked. It is global,
// so only a command calls it.
func QuietLibraries(w io.Writer) {
	logrus.SetOutput(process.PrefixWriter(w, "tidb"))
	logrus.SetLevel(logrus.ErrorLevel)
}

// Run is a TiDB server until ctx ends. It waits for PD, then for a store, then
// opens its ports; once ctx ends /status answers 500, and the ports close when
// graceful-wait-before-shutdown is over and the running statements are done.
func Run(ctx context.Context, log *slog.Logger, c *Config) (err error) {
	slow, err := openSlowLog(log, c.SlowLog, c.SlowThreshold)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, slow.close()) }()
	script, err := readScript(c)
	if err != nil {
		return err
	}
	pd, err := process.NewPD(c.PD, c.Files, log)
	if err != nil {
		return err
	}
	defer pd.Close()
	if err := waitForStore(ctx, pd); err != nil {
		return err
	}
	engine, err := newEngine(log, c)
	if err != nil {
		return err
	}
	// The registration outlives ctx a little, until the last statement is done.
	last, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	top, err := newTopology(last, log, pd, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, top.close()) }()
	statements := &journal{log: log, etcd: top.etcd, server: top.snapshot().ID, run: engine.run}
	if err := statements.initialize(ctx, script); err != nil {
		return err
	}
	revision, err := statements.replay(ctx, 0)
	if err != nil {
		return err
	}
	s := &serving{log: log, c: c, engine: engine, journal: statements, top: top, slow: slow}
	if err := s.open(ctx); err != nil {
		return err
	}
	// What the start needed is garbage now, and pods of a demo are small.
	debug.FreeOSMemory()
	return process.RunAll(last,
		func(context.Context) error { defer cancel(); return s.run(ctx, last) },
		top.run,
		func(ctx context.Context) error { return statements.follow(ctx, revision) })
}

func readScript(c *Config) (string, error) {
	if c.InitSQLFile == "" {
		return "", nil
	}
	text, err := os.ReadFile(filepath.Clean(c.InitSQLFile))
	if err != nil {
		return "", fmt.Errorf("read initialize-sql-file: %w", err)
	}
	return string(text), nil
}

// waitForStore waits until a TiKV store is registered, not going offline, and
// answers on its port.
func waitForStore(ctx context.Context, pd *process.PD) error {
	return pd.Retry(ctx, "look for a store", func(ctx context.Context, leader pdpb.PDClient) error {
		res, err := leader.GetAllStores(ctx, &pdpb.GetAllStoresRequest{Header: pd.Header(), ExcludeTombstoneStores: true})
		if err == nil {
			err = process.HeaderError(res.GetHeader())
		}
		if err != nil {
			return err
		}
		for _, store := range res.GetStores() {
			if store.GetState() != metapb.StoreState_Up || isTiFlash(store) {
				continue
			}
			one, cancel := context.WithTimeout(ctx, time.Second)
			conn, err := new(net.Dialer).DialContext(one, "tcp", store.GetAddress())
			cancel()
			if err == nil {
				return conn.Close()
			}
		}
		return errNoStore
	})
}

func isTiFlash(store *metapb.Store) bool {
	for _, l := range store.GetLabels() {
		if l.GetKey() == "engine" {
			return l.GetValue() != "tikv"
		}
	}
	return false
}

// serving is a server with open ports.
type serving struct {
	log     *slog.Logger
	c       *Config
	engine  *engine
	journal *journal
	top     *topology
	slow    *slowLog

	mysql  *server.Server
	in     *interceptor
	port   net.Listener // nil without a status port
	status *status
}

func (s *serving) open(ctx context.Context) error {
	client, err := process.Listen(ctx, net.JoinHostPort(s.c.Host, strconv.Itoa(s.c.Port)))
	if err != nil {
		return err
	}
	s.in = &interceptor{
		log: s.log, journal: s.journal, slow: s.slow, one: &s.engine.one, signing: signingOf(s.c.Document),
		sessions: func() *server.SessionManager { return s.mysql.SessionManager() },
	}
	secured, err := s.c.MySQL.Server(tls.VerifyClientCertIfGiven)
	if err != nil {
		return errors.Join(err, client.Close())
	}
	if s.mysql, err = s.engine.listen(client, secured, s.in); err != nil {
		return errors.Join(err, client.Close())
	}
	config, err := settings.NewTiDB(s.c.Document)
	if err != nil {
		return errors.Join(err, client.Close())
	}
	s.status = &status{log: s.log, topology: s.top, engine: s.engine, in: s.in, config: config}
	if !s.c.ReportStatus {
		return nil
	}
	s.port, err = s.c.Files.Listen(ctx, net.JoinHostPort(s.c.StatusHost, strconv.Itoa(s.c.StatusPort)))
	if err != nil {
		return errors.Join(err, client.Close())
	}
	return nil
}

// run serves until ctx ends, then stops in order; last is what the answers
// given meanwhile live on.
func (s *serving) run(ctx, last context.Context) error {
	done := make(chan error, 2)
	go func() { done <- s.mysql.Start() }()
	status, stopStatus := context.WithCancel(last)
	defer stopStatus()
	if s.port != nil {
		go func() { done <- process.ServeHTTP(status, s.port, s.status.handler()) }()
	}
	s.log.Info("ready to serve", "port", s.c.Port, "status", s.c.StatusPort)
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	s.status.stopping.Store(true)
	s.log.Info("stopping", "connections", s.engine.open.count())
	if err := process.WaitFor(last, s.c.GracefulWait); err != nil {
		return err
	}
	if err := s.mysql.Close(); err != nil {
		return fmt.Errorf("close MySQL port: %w", err)
	}
	drain, cancel := context.WithTimeout(last, drainTimeout)
	defer cancel()
	for s.in.running.Load() > 0 {
		if process.WaitFor(drain, 20*time.Millisecond) != nil {
			s.log.Warn("statements cut off", "running", s.in.running.Load())
			break
		}
	}
	s.engine.open.closeAll()
	s.log.Info("stopped")
	return nil
}
