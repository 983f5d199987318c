package ticdc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/tidb-groups/tidb-groups/e2e/standin/process"
	"github.com/tidb-groups/tidb-groups/e2e/standin/process/pdetcd"
)

const (
	// prefix of all keys in PD's etcd; below it lie captures/ID, stopping/ID, tables/N, owner/
	// and failed.
	prefix = "/tidb/cdc/standin/"
	// sessionTTL is after how many seconds a capture that died is missed, as TiCDC's.
	sessionTTL = 10
	// startTimeout is for how long a capture waits for PD when it starts.
	startTimeout = 10 * time.Second
	// every is how often a capture looks, and the owner takes a turn.
	every = 200 * time.Millisecond
)

var errResigned = errors.New("it has resigned")

// capture is one process.
type capture struct {
	log     *slog.Logger
	etcd    *clientv3.Client
	session *concurrency.Session
	id      string
	address string
	resign  chan struct{}
	owns    atomic.Bool
	seen    atomic.Pointer[cluster]
}

// registerCapture makes a capture known to the others.
func registerCapture(ctx context.Context, log *slog.Logger, etcd *clientv3.Client, address string) (*capture, error) {
	begin, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	lease, err := etcd.Grant(begin, sessionTTL)
	if err != nil {
		return nil, fmt.Errorf("get a lease of PD's etcd: %w", err)
	}
	// It outlives ctx, for what is told to the others at the end.
	session, err := concurrency.NewSession(etcd, concurrency.WithLease(lease.ID), concurrency.WithTTL(sessionTTL), concurrency.WithContext(context.WithoutCancel(ctx)))
	if err != nil {
		return nil, fmt.Errorf("begin a session in PD's etcd: %w", err)
	}
	c := &capture{log: log, etcd: etcd, session: session, id: string(uuid.NewUUID()), address: address, resign: make(chan struct{}, 1)}
	if err := c.put(ctx, "captures/"+c.id, address, clientv3.WithLease(session.Lease())); err != nil {
		return nil, err
	}
	log.Info("capture", "id", c.id, "address", address)
	return c, nil
}

// put writes one key.
func (c *capture) put(ctx context.Context, key, value string, options ...clientv3.OpOption) error {
	ctx, cancel := context.WithTimeout(ctx, pdetcd.Timeout)
	defer cancel()
	if _, err := c.etcd.Put(ctx, prefix+key, value, options...); err != nil {
		return fmt.Errorf("write %s: %w", key, err)
	}
	return nil
}

// read reads what etcd holds.
func (c *capture) read(ctx context.Context) (cluster, error) {
	ctx, cancel := context.WithTimeout(ctx, pdetcd.Timeout)
	defer cancel()
	out := cluster{captures: map[string]string{}, stopping: map[string]bool{}, tables: map[int]string{}}
	answer, err := c.etcd.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend))
	if err != nil {
		return out, fmt.Errorf("read %s: %w", prefix, err)
	}
	for _, kv := range answer.Kvs {
		what, name, _ := strings.Cut(strings.TrimPrefix(string(kv.Key), prefix), "/")
		switch value := string(kv.Value); what {
		case "captures":
			out.captures[name] = value
		case "stopping":
			out.stopping[name] = true
		case "tables":
			if n, err := strconv.Atoi(name); err == nil {
				out.tables[n] = value
			}
		case "owner":
			if out.owner == "" { // of those that want to be, the first one is
				out.owner = value
			}
		case "failed":
			out.failed = value
		}
	}
	return out, nil
}

// look keeps what was seen last, for answers that must not wait. A capture whose session has
// ended is none any more: it ends, and its kubelet starts it again.
func (c *capture) look(ctx context.Context) error {
	for {
		if seen, err := c.read(ctx); err == nil {
			c.seen.Store(&seen)
		} else if ctx.Err() == nil {
			c.log.Warn("PD does not answer", "error", err)
		}
		select {
		case <-c.session.Done():
			return errors.New("the session in PD's etcd has ended")
		default:
		}
		if process.WaitFor(ctx, every) != nil {
			return nil
		}
	}
}

// campaign becomes the owner when it is its turn, until ctx ends.
func (c *capture) campaign(ctx context.Context) error {
	for {
		election := concurrency.NewElection(c.session, prefix+"owner")
		if err := election.Campaign(ctx, c.id); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("campaign: %w", err)
		}
		c.log.Info("this capture is the owner")
		c.owns.Store(true)
		err := c.lead(ctx, election)
		if !errors.Is(err, errResigned) {
			return err // what it still owns at its end is looked at there
		}
		c.owns.Store(false)
		give, cancel := context.WithTimeout(ctx, pdetcd.Timeout)
		err = election.Resign(give)
		cancel()
		if err != nil {
			return fmt.Errorf("resign: %w", err)
		}
		c.log.Info("this capture has resigned")
	}
}

// lead takes a turn again and again.
func (c *capture) lead(ctx context.Context, election *concurrency.Election) error {
	for {
		if now, err := c.read(ctx); err == nil {
			for table, to := range now.turn() {
				if err := c.assign(ctx, election, table, to); err != nil {
					c.log.Warn("a table stays where it is", "table", table, "error", err)
				}
			}
		}
		select {
		case <-c.resign:
			return errResigned
		case <-ctx.Done():
			return nil
		case <-time.After(every):
		}
	}
}

// assign gives a table to a capture, as long as this one is the owner.
func (c *capture) assign(ctx context.Context, election *concurrency.Election, table int, to string) error {
	ctx, cancel := context.WithTimeout(ctx, pdetcd.Timeout)
	defer cancel()
	answer, err := c.etcd.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(election.Key()), "=", election.Rev())).
		Then(clientv3.OpPut(fmt.Sprintf("%stables/%d", prefix, table), to)).Commit()
	switch {
	case err != nil:
		return fmt.Errorf("assign: %w", err)
	case !answer.Succeeded:
		return errors.New("another capture is the owner")
	}
	return nil
}

// leave ends the capture. What it could have handed over is written down for the others.
func (c *capture) leave(ctx context.Context) error {
	now, err := c.read(ctx)
	if err == nil {
		had, owned := now.count(c.id), now.owner == c.id
		if len(now.takers(c.id)) > 0 && (had > 0 || owned) {
			text := fmt.Sprintf("capture %s ended with %d tables, owner: %t", c.address, had, owned)
			c.log.Error(text)
			err = c.put(ctx, "failed", text)
		}
	}
	return errors.Join(err, c.session.Close())
}
