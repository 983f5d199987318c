package localcluster

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParseStat(t *testing.T) {
	const rest = " S 1 2 2 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4711 0 0"
	for _, tc := range []struct {
		name  string
		line  string
		state byte
		start uint64
		fails string
	}{
		{name: "an ordinary command", line: "42 (etcd)" + rest, state: 'S', start: 4711},
		{name: "a command with blanks and parentheses in it", line: "42 (a) b (c)" + rest, state: 'S', start: 4711},
		{name: "a line without a command", line: "42 S 1", fails: "no command"},
		{name: "a line that was cut off", line: "42 (etcd) S 1", fails: "too short"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			state, start, err := parseStat(tc.line)
			if tc.fails != "" {
				require.ErrorContains(t, err, tc.fails)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, tc.state, state)
			assert.Equal(t, tc.start, start)
		})
	}
}

func TestStartTimeIsReadFromUptime(t *testing.T) {
	now := time.Unix(1000, 0)
	got, err := startTime(now, "100.50 33.00\n", 5050)
	require.NoError(t, err)
	assert.Equal(t, now.Add(-50*time.Second), got)
}

func TestCgroupBelow(t *testing.T) {
	const content = "8:pids:/tidb-groups-local/node-1/kubepods/pod1\n0::/\n"
	for _, tc := range []struct {
		name, path string
		want       bool
	}{
		{"a parent", "/tidb-groups-local/node-1", true},
		{"the group itself", "/tidb-groups-local/node-1/kubepods/pod1", true},
		{"a group whose name only begins the same", "/tidb-groups-local/node", false},
		{"another node", "/tidb-groups-local/node-2", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			assert.Equal(t, tc.want, containsCgroup(content, tc.path))
		})
	}
}

// sleeper starts a daemon that only waits, as the process of a cluster.
func sleeper(t *testing.T) (processes, process) {
	t.Helper()
	path, err := exec.LookPath("tail")
	require.NoError(t, err)
	p := processes{layout: layout{root: t.TempDir()}}
	d := process{
		name: "node-1/kubelet", path: path, args: []string{"-f", "/dev/null"},
		limit: time.Minute, ready: func(context.Context) error { return nil },
	}
	t.Cleanup(func() {
		// The test's context is over by now.
		require.NoError(t, killProcesses(context.Background(), func(pid int) bool { return p.belongsToCluster(pid, "") }))
	})
	return p, d
}

func TestADaemonIsStartedOnceAndEndedByItsMark(t *testing.T) {
	p, d := sleeper(t)
	started, err := p.ensure(t.Context(), d)
	require.NoError(t, err)
	assert.True(t, started)
	id, ok := p.recorded(d.name)
	require.True(t, ok)

	started, err = p.ensure(t.Context(), d)
	require.NoError(t, err)
	assert.False(t, started, "it runs already")

	require.NoError(t, killProcesses(t.Context(), func(pid int) bool { return p.belongsToCluster(pid, "node-2/") }))
	assert.True(t, id.isAlive(), "another node's processes were meant")
	require.NoError(t, killProcesses(t.Context(), func(pid int) bool { return p.belongsToCluster(pid, "node-1/") }))
	assert.False(t, id.isAlive())
	_, ok = p.recorded(d.name)
	assert.False(t, ok)
}

func TestADaemonWithoutPidFileIsFoundByItsMark(t *testing.T) {
	p, d := sleeper(t)
	_, err := p.ensure(t.Context(), d)
	require.NoError(t, err)
	want, ok := p.recorded(d.name)
	require.True(t, ok)
	require.NoError(t, os.Remove(p.layout.pidFile(d.name)), "as if up was killed before it wrote it")

	got, ok, err := p.find(d)
	require.NoError(t, err)
	require.True(t, ok)
	assert.Equal(t, want, got)
	_, ok = p.recorded(d.name)
	assert.True(t, ok, "the pid file is back")
}

func TestAPidFileOfARecycledPidNamesNoProcess(t *testing.T) {
	p := processes{layout: layout{root: t.TempDir()}}
	other := exec.Command("tail", "-f", "/dev/null")
	require.NoError(t, other.Start())
	t.Cleanup(func() {
		require.NoError(t, other.Process.Kill())
		require.Error(t, other.Wait(), "it was killed")
	})
	id, ok := identifyProcess(other.Process.Pid)
	require.True(t, ok)

	for _, tc := range []struct {
		name   string
		change func(*identity)
	}{
		{"a process that started at another time", func(i *identity) { i.Start-- }},
		{"a process of another boot", func(i *identity) { i.Boot = "another" }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			stale := id
			tc.change(&stale)
			require.NoError(t, p.record("etcd", stale))
			_, ok := p.recorded("etcd")
			assert.False(t, ok)
			wait, err := stale.signal(9)
			require.NoError(t, err)
			require.NoError(t, wait(t.Context()))
			assert.True(t, id.isAlive(), "it was not meant")
		})
	}
	t.Run("a pid file that a crash left half written", func(t *testing.T) {
		require.NoError(t, writeFile(p.layout.pidFile("etcd"), []byte(`{"pid":`), 0o644))
		_, ok := p.recorded("etcd")
		assert.False(t, ok)
	})
}

func TestADaemonThatEndsIsReportedWithItsLog(t *testing.T) {
	p := processes{layout: layout{root: t.TempDir()}}
	sh, err := exec.LookPath("sh")
	require.NoError(t, err)
	_, err = p.ensure(t.Context(), process{
		name: "etcd", path: sh, args: []string{"-c", "echo no space left; exit 3"},
		limit: time.Minute,
		ready: func(context.Context) error { return assert.AnError },
	})
	require.ErrorContains(t, err, "etcd")
	require.ErrorContains(t, err, "it ended")
	require.ErrorContains(t, err, "no space left")
}

func TestADaemonThatDoesNotGetReadyIsReportedWithTheReason(t *testing.T) {
	p, d := sleeper(t)
	d.limit = 120 * time.Millisecond
	d.ready = func(context.Context) error { return assert.AnError }
	_, err := p.ensure(t.Context(), d)
	require.ErrorIs(t, err, assert.AnError)
	require.ErrorContains(t, err, "wait for node-1/kubelet to be ready: not within 120ms")
}
