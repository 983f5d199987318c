package localcluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// procDir is where the kernel shows processes.
const procDir = "/proc"

// identity names one process for all time: a process id comes back, but not
// with the same start time since the same boot.
type identity struct {
	PID int `json:"pid"`
	// Start is the start time in clock ticks since boot (field 22 of stat).
	Start uint64 `json:"start"`
	// Boot is the kernel's boot id.
	Boot string `json:"boot"`
}

// parseStat reads state and start time from a /proc/<pid>/stat line. The
// command in it may hold spaces and parentheses, so the last one counts.
func parseStat(line string) (state byte, start uint64, err error) {
	end := strings.LastIndexByte(line, ')')
	if end < 0 {
		return 0, 0, fmt.Errorf("parse process status %q: no command in it", line)
	}
	fields := strings.Fields(line[end+1:])
	if len(fields) < 20 {
		return 0, 0, fmt.Errorf("parse process status %q: too short", line)
	}
	start, err = strconv.ParseUint(fields[19], 10, 64)
	if err != nil {
		return 0, 0, fmt.Errorf("parse start time: %w", err)
	}
	return fields[0][0], start, nil
}

func bootID() string {
	id, err := os.ReadFile(filepath.Join(procDir, "sys/kernel/random/boot_id"))
	if err != nil {
		return "" // without one, start times alone must do
	}
	return strings.TrimSpace(string(id))
}

// identifyProcess returns the identity of a running process; ok is false for one that
// has ended, even if its parent has not noticed yet.
func identifyProcess(pid int) (id identity, ok bool) {
	line, err := os.ReadFile(filepath.Join(procDir, strconv.Itoa(pid), "stat"))
	if err != nil {
		return identity{}, false
	}
	state, start, err := parseStat(string(line))
	if err != nil || state == 'Z' || state == 'X' {
		return identity{}, false
	}
	return identity{PID: pid, Start: start, Boot: bootID()}, true
}

func (i identity) isAlive() bool {
	now, ok := identifyProcess(i.PID)
	return ok && now == i
}

// ticks is how many clock ticks the kernel shows a second as, on every
// architecture that Linux still runs on.
const ticks = 100

// startedAt returns when the process started, to the hundredth of a second.
func (i identity) startedAt(now time.Time) (time.Time, error) {
	content, err := os.ReadFile(filepath.Join(procDir, "uptime"))
	if err != nil {
		return time.Time{}, fmt.Errorf("read uptime: %w", err)
	}
	return startTime(now, string(content), i.Start)
}

// startTime reads the content of /proc/uptime.
func startTime(now time.Time, uptime string, start uint64) (time.Time, error) {
	first, _, _ := strings.Cut(uptime, " ")
	up, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("parse uptime: %w", err)
	}
	age := up - float64(start)/ticks
	return now.Add(-time.Duration(age * float64(time.Second))), nil
}

// listProcesses lists the processes that match, by process id.
func listProcesses(match func(pid int) bool) ([]identity, error) {
	entries, err := os.ReadDir(procDir)
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var found []identity
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		if !match(pid) {
			continue
		}
		if id, ok := identifyProcess(pid); ok {
			found = append(found, id)
		}
	}
	return found, nil
}

// procFields reads one of the NUL-separated files of a process.
func procFields(pid int, file string) []string {
	content, err := os.ReadFile(filepath.Join(procDir, strconv.Itoa(pid), file))
	if err != nil || len(content) == 0 {
		return nil
	}
	var fields []string
	for f := range bytes.SplitSeq(bytes.TrimRight(content, "\x00"), []byte{0}) {
		fields = append(fields, string(f))
	}
	return fields
}

// isInCgroup tells whether a process is in a control group at or below path.
func isInCgroup(pid int, path string) bool {
	content, err := os.ReadFile(filepath.Join(procDir, strconv.Itoa(pid), "cgroup"))
	return err == nil && containsCgroup(string(content), path)
}

// containsCgroup reads the content of /proc/<pid>/cgroup.
func containsCgroup(content, path string) bool {
	for line := range strings.Lines(content) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) == 3 && (parts[2] == path || strings.HasPrefix(parts[2], path+"/")) {
			return true
		}
	}
	return false
}

// killRounds bounds how often kill looks for processes that were started while
// it killed their parents.
const killRounds = 20

// killProcesses ends every process that matches, and those that they start meanwhile,
// and returns when none is left.
func killProcesses(ctx context.Context, match func(pid int) bool) error {
	for range killRounds {
		found, err := listProcesses(match)
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return nil
		}
		var gone []func(context.Context) error
		for _, v := range found {
			wait, err := v.signal(unix.SIGKILL)
			if err != nil {
				return err
			}
			gone = append(gone, wait)
		}
		for _, wait := range gone {
			if err := wait(ctx); err != nil {
				return err
			}
		}
	}
	return errors.New("kill processes: new ones keep appearing")
}

// signal sends a signal to exactly this process, never to one that got its id
// later, and returns a function that waits for its end.
func (i identity) signal(sig unix.Signal) (wait func(context.Context) error, err error) {
	nothing := func(context.Context) error { return nil }
	fd, err := unix.PidfdOpen(i.PID, 0)
	if errors.Is(err, unix.ESRCH) {
		return nothing, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open process %d: %w", i.PID, err)
	}
	if !i.isAlive() { // the handle holds the id now, so this answer stays true
		return nothing, unix.Close(fd)
	}
	if err := unix.PidfdSendSignal(fd, sig, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return nil, errors.Join(fmt.Errorf("signal process %d: %w", i.PID, err), unix.Close(fd))
	}
	return func(ctx context.Context) error {
		defer func() { _ = unix.Close(fd) }() // nothing was written to it
		return waitPidfd(ctx, i.PID, fd)
	}, nil
}

// endLimit is how long a process may take to end after SIGKILL.
const endLimit = 20 * time.Second

func waitPidfd(ctx context.Context, pid, fd int) error {
	ctx, cancel := context.WithTimeout(ctx, endLimit)
	defer cancel()
	for {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("wait for process %d to end after a signal: %w", pid, err)
		}
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, 100) // milliseconds; short, so that ctx is heard
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("wait for process %d: %w", pid, err)
		}
		if n > 0 {
			return nil
		}
	}
}
