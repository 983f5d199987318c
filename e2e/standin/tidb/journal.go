package tidb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/tidb-groups/tidb-groups/e2e/standin/process"
	"github.com/tidb-groups/tidb-groups/e2e/standin/process/pdetcd"
)

// Keys of the stand-in's own in PD's etcd.
const (
	journalPrefix = "/stand-in/tidb/journal/"
	initKey       = "/stand-in/tidb/initialized"
)

// entry is one statement, or one script, that wrote.
type entry struct {
	Server   string `json:"server"`
	Database string `json:"database,omitempty"`
	SQL      string `json:"sql"`
}

// journal is the log of writing statements in PD's etcd, in the order of its
// revisions. Each server replays what the others wrote.
type journal struct {
	log    *slog.Logger
	etcd   *clientv3.Client
	server string
	run    func(ctx context.Context, database, sql string) error
	next   atomic.Uint64 // number of this server's next entry
}

// initialize writes the script as the cluster's first entry if no server of
// this cluster has ever been here: the script runs once per cluster, and the
// mark is set also when there is none, as TiDB's bootstrap is.
func (j *journal) initialize(ctx context.Context, script string) error {
	for {
		err := j.mark(ctx, script)
		if err == nil {
			return nil
		}
		j.log.Warn("waiting for PD's etcd", "error", err)
		if err := process.WaitFor(ctx, time.Second/5); err != nil {
			return err
		}
	}
}

func (j *journal) mark(ctx context.Context, script string) error {
	ctx, cancel := context.WithTimeout(ctx, pdetcd.Timeout)
	defer cancel()
	ops := []clientv3.Op{clientv3.OpPut(initKey, j.server)}
	if script != "" {
		text, err := json.Marshal(entry{SQL: script})
		if err != nil {
			return fmt.Errorf("encode script: %w", err)
		}
		ops = append(ops, clientv3.OpPut(journalPrefix+"0", string(text)))
	}
	res, err := j.etcd.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(initKey), "=", 0)).Then(ops...).Commit()
	if err != nil {
		return fmt.Errorf("initialize the cluster: %w", err)
	}
	if res.Succeeded {
		j.log.Info("initialized the cluster", "script", script != "")
	}
	return nil
}

// append logs a statement that this server has run.
func (j *journal) append(ctx context.Context, database, sql string) error {
	ctx, cancel := context.WithTimeout(ctx, pdetcd.Timeout)
	defer cancel()
	text, err := json.Marshal(entry{Server: j.server, Database: database, SQL: sql})
	if err != nil {
		return fmt.Errorf("encode statement: %w", err)
	}
	key := fmt.Sprintf("%s%s/%012d", journalPrefix, j.server, j.next.Add(1))
	if _, err := j.etcd.Put(ctx, key, string(text)); err != nil {
		return fmt.Errorf("log statement in PD's etcd: %w", err)
	}
	return nil
}

// replay runs all there is after a revision, and returns the revision up to
// which that was.
func (j *journal) replay(ctx context.Context, after int64) (int64, error) {
	for {
		all, cancel := context.WithTimeout(ctx, pdetcd.Timeout)
		res, err := j.etcd.Get(all, journalPrefix, clientv3.WithPrefix(), clientv3.WithMinModRev(after+1),
			clientv3.WithSort(clientv3.SortByModRevision, clientv3.SortAscend))
		cancel()
		if err != nil {
			j.log.Warn("waiting for PD's etcd", "error", err)
			if err := process.WaitFor(ctx, time.Second/5); err != nil {
				return 0, err
			}
			continue
		}
		for _, kv := range res.Kvs {
			j.apply(ctx, kv.Value)
		}
		return res.Header.Revision, nil
	}
}

// follow runs what the other servers log after the revision, until ctx ends.
// After a watch that broke off it reads what it missed, since a watch can't
// begin at a revision that has been compacted away.
func (j *journal) follow(ctx context.Context, revision int64) error {
	for ctx.Err() == nil {
		// Without a leader a watch would wait forever, without an error.
		changes := j.etcd.Watch(clientv3.WithRequireLeader(ctx), journalPrefix, clientv3.WithPrefix(), clientv3.WithRev(revision+1))
		for res := range changes {
			if err := res.Err(); err != nil {
				j.log.Debug("watch of PD's etcd broke off", "error", err)
				break
			}
			for _, e := range res.Events {
				j.apply(ctx, e.Kv.Value)
				revision = e.Kv.ModRevision
			}
		}
		if process.WaitFor(ctx, time.Second/5) != nil {
			break
		}
		if missed, err := j.replay(ctx, revision); err == nil {
			revision = missed
		}
	}
	return nil
}

// apply runs one entry, unless it is this server's own and has run. A failure
// is logged: stopping would not make the data any better.
func (j *journal) apply(ctx context.Context, text []byte) {
	var e entry
	err := json.Unmarshal(text, &e)
	if err == nil && e.Server == j.server {
		return
	}
	if err == nil {
		err = j.run(ctx, e.Database, e.SQL)
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		j.log.Error("statement not replayed", "sql", e.SQL, "error", err)
	}
}
