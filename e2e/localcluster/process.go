package localcluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// markEnv is set in the environment of every process that is started, as
// "<state directory>|<process name>": the kernel shows it, children inherit it,
// and it is there from the process's first instant, unlike a pid file.
const markEnv = "TIDB_GROUPS_LOCAL_PROCESS"

// process describes one daemon.
type process struct {
	// name is unique in the cluster, for example etcd or node-1/kubelet.
	name string
	path string
	args []string
	env  []string
	// ready returns nil as soon as the process does its work.
	ready func(context.Context) error
	// limit is how long it may take to get ready.
	limit time.Duration
}

// processes starts, finds and ends the daemons of one cluster.
type processes struct{ layout layout }

func (p processes) markValue(name string) string { return p.layout.root + "|" + name }

// toolEnv is the environment of programs that are run to the end but can take
// a while: should their caller be killed, Down finds them too.
func (p processes) toolEnv() []string {
	return append(os.Environ(), markEnv+"="+p.markValue("tool"))
}

// find returns the running process of a daemon. The pid file is the usual
// answer; a process whose starter was killed before it wrote one is found by
// its mark.
func (p processes) find(d process) (identity, bool, error) {
	if id, ok := p.recorded(d.name); ok {
		return id, true, nil
	}
	found, err := listProcesses(func(pid int) bool {
		args := procFields(pid, "cmdline")
		return len(args) > 0 && args[0] == d.path && p.hasMark(pid, d.name)
	})
	if err != nil || len(found) == 0 {
		return identity{}, false, err
	}
	return found[0], true, p.record(d.name, found[0])
}

func (p processes) hasMark(pid int, name string) bool {
	return slices.Contains(procFields(pid, "environ"), markEnv+"="+p.markValue(name))
}

// belongsToCluster tells whether a process belongs to the cluster, or with a prefix such as
// "node-1/" to a part of it.
func (p processes) belongsToCluster(pid int, prefix string) bool {
	return slices.ContainsFunc(procFields(pid, "environ"), func(e string) bool {
		return strings.HasPrefix(e, markEnv+"="+p.markValue(prefix))
	})
}

// recorded reads the pid file; ok only if exactly that process still runs.
func (p processes) recorded(name string) (identity, bool) {
	content, err := os.ReadFile(p.layout.pidFile(name))
	if err != nil {
		return identity{}, false
	}
	var id identity
	if err := json.Unmarshal(content, &id); err != nil {
		return identity{}, false // half-written by a crash: as good as none
	}
	return id, id.isAlive()
}

func (p processes) record(name string, id identity) error {
	content, err := json.Marshal(id)
	if err != nil {
		return fmt.Errorf("encode pid file: %w", err)
	}
	if err := writeFile(p.layout.pidFile(name), content, 0o644); err != nil {
		return fmt.Errorf("record process %s: %w", name, err)
	}
	return nil
}

// ensure starts a daemon unless it runs, and waits until it is ready. started
// tells which it was.
func (p processes) ensure(ctx context.Context, d process) (started bool, err error) {
	id, ok, err := p.find(d)
	if err != nil {
		return false, fmt.Errorf("find %s: %w", d.name, err)
	}
	if !ok {
		if id, err = p.start(d); err != nil {
			return false, fmt.Errorf("start %s: %w", d.name, err)
		}
	}
	if err := p.await(ctx, d, id); err != nil {
		return !ok, err
	}
	return !ok, nil
}

// start runs a daemon detached, so that it survives this process.
func (p processes) start(d process) (identity, error) {
	file := p.layout.logFile(d.name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return identity{}, fmt.Errorf("create log directory: %w", err)
	}
	log, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return identity{}, fmt.Errorf("open log: %w", err)
	}
	defer func() { _ = log.Close() }() // the daemon has its own handle
	cmd := exec.Command(d.path, d.args...)
	cmd.Dir = p.layout.root
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append([]string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"HOME=" + p.layout.root,
		markEnv + "=" + p.markValue(d.name),
	}, d.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return identity{}, err
	}
	id, ok := identifyProcess(cmd.Process.Pid)
	// Without a parent that waits, an ended daemon would stay as a zombie for as
	// long as this process lives.
	go func() { _ = cmd.Wait() }()
	if !ok {
		return identity{}, fmt.Errorf("it ended at once; last lines of %s:\n%s", file, readTail(file))
	}
	return id, p.record(d.name, id)
}

// probeInterval is how often a starting daemon is asked whether it is ready.
const probeInterval = 50 * time.Millisecond

// await waits until a daemon is ready, it dies, or its time is over.
func (p processes) await(ctx context.Context, d process, id identity) error {
	err := pollUntilDone(ctx, d.limit, func(ctx context.Context) (bool, error) {
		if !id.isAlive() {
			return true, errors.New("it ended")
		}
		err := d.ready(ctx)
		return err == nil, err
	})
	if err == nil {
		return nil
	}
	file := p.layout.logFile(d.name)
	return fmt.Errorf("wait for %s to be ready: %w; last lines of %s:\n%s", d.name, err, file, readTail(file))
}

// pollUntilDone calls probe until it is done, at once and then at intervals, and returns
// its last error, or that the time is over.
func pollUntilDone(ctx context.Context, limit time.Duration, probe func(context.Context) (done bool, err error)) error {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	ticker := time.NewTicker(probeInterval)
	defer ticker.Stop()
	for {
		done, err := probe(limited)
		if done {
			return err
		}
		select {
		case <-limited.Done():
			if ctx.Err() != nil { // the caller gave up, not the clock
				return context.Cause(ctx)
			}
			if err != nil {
				return fmt.Errorf("not within %s: %w", limit, err)
			}
			return fmt.Errorf("not within %s: %w", limit, limited.Err())
		case <-ticker.C:
		}
	}
}

// tailBytes is how much of a log's end is looked at for its last lines.
const tailBytes = 64 << 10

// tailLines is how many lines of a log an error shows.
const tailLines = 15

// readTail returns the last lines of a file, or why there are none.
func readTail(file string) string {
	f, err := os.Open(file)
	if err != nil {
		return "(" + err.Error() + ")"
	}
	defer func() { _ = f.Close() }() // opened for reading only
	if info, err := f.Stat(); err == nil && info.Size() > tailBytes {
		if _, err := f.Seek(-tailBytes, io.SeekEnd); err != nil {
			return "(" + err.Error() + ")"
		}
	}
	content, err := io.ReadAll(f)
	if err != nil {
		return "(" + err.Error() + ")"
	}
	return lastLines(string(content), tailLines)
}
