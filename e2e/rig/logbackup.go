package rig

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/tidb-groups/tidb-groups/e2e/workload/memorydb"
	"github.com/tidb-groups/tidb-groups/operators/backup/runner"
)

const (
	// startTTL and pauseTTL are how long PD holds data back for a task that was just started, and
	// for one that is paused.
	startTTL = 30 * time.Minute
	pauseTTL = 24 * time.Hour
	// logicalBits are those of a time stamp below its milliseconds.
	logicalBits = 18
)

// logOf is a log that the stores write, or have written.
type logOf struct {
	// task is empty once it is stopped; paused says that it writes nothing.
	task   string
	paused bool
	// from and to are its time stamps, start that of the task, and since is when to was right.
	from, to, start uint64
	since           time.Time
}

// advance has the checkpoint follow the clock.
func (l *logOf) advance() {
	now := time.Now()
	if l.task != "" && !l.paused {
		l.to += uint64(now.Sub(l.since).Milliseconds()) << logicalBits //nolint:gosec // the clock does not go back
	}
	l.since = now
}

// restorable refuses a restore while a log is written, as BR does.
func (d *Database) restorable() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range d.logs {
		if l.task != "" {
			return errors.New("log backup task is running: " + l.task + ", and isn't compatible with your restore")
		}
	}
	return nil
}

// log plays br log. Of a task whose name begins with gap, PD has not what it is to go on from.
func (b br) log(tool runner.Process, flags map[string]string) error {
	b.db.mu.Lock()
	defer b.db.mu.Unlock()
	for _, l := range b.db.logs {
		l.advance()
	}
	switch tool.Args[1] {
	case "start":
		return b.startLog(flags)
	case "status":
		return b.tellLogs(tool)
	case "truncate", "metadata":
		return b.lookIntoLog(tool, flags)
	}
	for _, l := range b.db.logs {
		if l.task != "" && l.task == flags["task-name"] {
			return b.changeLog(l, tool.Args[1])
		}
	}
	return errors.New("[BR:PITR:ErrTaskNotFound]no such task " + flags["task-name"])
}

// startLog starts a task, of which a cluster has one.
func (b br) startLog(flags map[string]string) error {
	at, err := url.Parse(flags["storage"])
	if err != nil {
		return fmt.Errorf("read the storage: %w", err)
	}
	for _, l := range b.db.logs {
		if l.task != "" {
			return errors.New("[BR:Stream:ErrStreamLogTaskExist]failed to start the log backup, allow only one running task")
		}
	}
	if strings.HasPrefix(flags["task-name"], "gap") {
		return errors.New("GC safepoint 9 exceed TS 7: [BR:Backup:ErrBackupGCSafepointExceeded]backup GC safepoint exceeded")
	}
	begin, err := strconv.ParseUint(memorydb.TSO, 10, 64)
	if err != nil {
		return fmt.Errorf("read the time stamp: %w", err)
	}
	folder := filepath.Join(b.server.dir, at.Host, at.Path)
	if err := beginLog(filepath.Join(folder, "backup.lock"), filepath.Join(folder, "backupmeta")); err != nil {
		return err
	}
	l := b.db.logs[at.Host+at.Path]
	if l == nil {
		l = &logOf{from: begin, to: begin, since: time.Now()}
		b.db.logs[at.Host+at.Path] = l
	}
	cluster := b.db.leader()
	if cluster == nil {
		return errNoLeader
	}
	l.task, l.paused, l.start = flags["task-name"], false, l.to
	_, err = cluster.UpdateServiceSafePoint("br-"+l.task, startTTL, l.start-1)
	return err
}

// beginLog writes what a log begins with, as BR does: the lock first. A folder with a lock has a log.
func beginLog(lock, meta string) error {
	if _, err := os.Stat(lock); err == nil {
		if _, err := os.Stat(meta); err != nil {
			return errors.New("NoSuchKey: backupmeta")
		}
		return nil
	}
	for _, file := range []string{lock, meta} {
		if err := writeFile(file, "log"); err != nil {
			return fmt.Errorf("write a log: %w", err)
		}
	}
	return nil
}

// changeLog pauses, resumes or stops a task.
func (b br) changeLog(l *logOf, verb string) error {
	cluster := b.db.leader()
	if cluster == nil {
		return errNoLeader
	}
	point, ttl := l.task+"_pause_safepoint", pauseTTL
	switch verb {
	case "pause":
		l.paused = true
	case "resume":
		l.paused, ttl = false, startTTL
	case "stop":
		l.task, ttl = "", 0
	}
	_, err := cluster.UpdateServiceSafePoint(point, ttl, l.to-1)
	return err
}

// tellLogs writes the tasks as br log status --json does, behind a line of its log.
func (b br) tellLogs(tool runner.Process) error {
	tasks := []map[string]any{}
	for at, l := range b.db.logs {
		if l.task == "" {
			continue
		}
		status := "NORMAL"
		if l.paused {
			status = "PAUSE"
		}
		tasks = append(tasks, map[string]any{
			"name": l.task, "start_ts": l.start, "status": status, "checkpoint": l.to, "storage": "s3://" + at,
			"table_filter": []string{"*.*"}, "progress": []any{}, "estimate_qps": 1, "last_errors": []any{},
		})
	}
	text, err := json.Marshal(tasks)
	if err != nil {
		return fmt.Errorf("write tasks: %w", err)
	}
	_, err = fmt.Fprintf(tool.Out, "[2026/01/02 03:04:05.678 +00:00] [INFO] [client.go:1] [\"connected\"]\n%s\n", text)
	return err
}

// lookIntoLog deletes what is old, or tells what there is.
func (b br) lookIntoLog(tool runner.Process, flags map[string]string) error {
	at, err := url.Parse(flags["storage"])
	if err != nil {
		return fmt.Errorf("read the storage: %w", err)
	}
	l := b.db.logs[at.Host+at.Path]
	if l == nil {
		return errors.New("no log in " + at.Path)
	}
	if tool.Args[1] == "metadata" {
		_, err := fmt.Fprintf(tool.Out, "[2026/01/02 03:04:05.678 +00:00] [INFO] [collector.go:69] [\"log metadata\"] [log-min-ts=%d] [log-max-ts=%d]\n", l.from, l.to)
		return err
	}
	until, err := strconv.ParseUint(flags["until"], 10, 64)
	if err != nil {
		return fmt.Errorf("read --until: %w", err)
	}
	l.from = max(l.from, until)
	return nil
}
