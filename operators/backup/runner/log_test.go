package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/backup/cluster"
	"github.com/tidb-groups/tidb-groups/operators/backup/failure"
	"github.com/tidb-groups/tidb-groups/operators/backup/result"
	"github.com/tidb-groups/tidb-groups/shared/testkit/objectstore"
)

// brOf plays br log as its manual has it: a cluster has one task.
type brOf struct {
	pd    *pdOf
	tasks []logTask
	calls []string
	fails map[string]string
	// wordy leaves the status out of the JSON, as versions up to v8.5.0 do.
	wordy bool
}

func (b *brOf) run(_ context.Context, tool Process) error {
	verb := tool.Args[1]
	b.calls = append(b.calls, verb)
	if words := b.fails[verb]; words != "" {
		_, _ = fmt.Fprintln(tool.Out, "Error: "+words)
		return errors.New("exit status 1")
	}
	value := func(flag string) string {
		at := slices.Index(tool.Args, flag)
		if at < 0 {
			return ""
		}
		return tool.Args[at+1]
	}
	switch verb {
	case "start":
		b.tasks = append(b.tasks, logTask{Name: value("--task-name"), Start: 42, Status: taskNormal, Storage: value("--storage")})
		b.pd.points = append(b.pd.points, cluster.SafePoint{ServiceID: "br-start", SafePoint: 41})
	case "pause":
		switch {
		case len(b.tasks) == 0:
			_, _ = fmt.Fprintln(tool.Out, "Error: no such task "+value("--task-name")+": [BR:PiTR:ErrTaskNotFound]task not found")
			return errors.New("exit status 1")
		case b.tasks[0].Status != taskNormal:
			_, _ = fmt.Fprintln(tool.Out, "Error: The task "+value("--task-name")+" is paused already.: [BR:KV:ErrKVUnknown]unknown tikv error occur")
			return errors.New("exit status 1")
		}
		b.tasks[0].Status = taskPaused
		b.pd.points = append(b.pd.points, cluster.SafePoint{ServiceID: value("--task-name") + "_pause_safepoint", SafePoint: 44})
	case "resume":
		if b.tasks[0].Status == taskNormal {
			return errors.New("the task is active already")
		}
		b.tasks[0].Status = taskNormal
	case "stop":
		if len(b.tasks) == 0 {
			_, _ = fmt.Fprintln(tool.Out, "Error: no such task "+value("--task-name")+": [BR:PiTR:ErrTaskNotFound]task not found")
			return errors.New("exit status 1")
		}
		b.tasks = nil
	case "status":
		if !slices.Contains(tool.Args, "--json") {
			_, _ = fmt.Fprintf(tool.Out, "● Total 1 Tasks.\n> #1 <\n              name: %s\n            status: ● %s\n             start: 2026-01-02 03:04:05.678 +0000\n", value("--task-name"), b.tasks[0].Status)
			return nil
		}
		told := slices.Clone(b.tasks)
		for i := range told {
			if b.wordy {
				told[i].Status = ""
			}
		}
		text, err := json.Marshal(told)
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintf(tool.Out, "[2026/01/02 03:04:05.678 +00:00] [INFO] [a.go:1] [words]\n%s\n", text)
	}
	return nil
}

// keeping is a command about a log, with what it runs on.
func keeping(t *testing.T) (Command, *brOf, server) {
	t.Helper()
	pd := &pdOf{points: others()}
	command, _, s := physical(t, pd)
	br := &brOf{pd: pd, fails: map[string]string{}}
	command.Start = br.run
	command.Log = Log{Task: "pitr_12345678", State: result.TaskRunning}
	return command, br, s
}

func TestBR01ATaskIsBroughtToItsStateAndNothingOfItStaysInPD(t *testing.T) {
	c, br, s := keeping(t)
	do := func(state string, calls ...string) result.Log {
		t.Helper()
		br.calls, c.Log.State = nil, state
		out, err := c.keepLog(t.Context(), io.Discard)
		require.NoError(t, err)
		assert.Equal(t, calls, br.calls)
		return *out.Log
	}
	assert.Equal(t, result.Log{Task: "Running", Start: "42", Checkpoint: "42"}, do(result.TaskRunning, "status", "start", "status"))
	assert.Contains(t, br.tasks[0].Storage, "s3://copies/prod/monday/data")
	assert.Equal(t, []string{"prod/monday/backup.json"}, objectstore.Files(t, filepath.Join(s.dir, "copies")))
	br.tasks[0].Checkpoint = 99
	assert.Equal(t, result.Log{Task: "Running", Start: "42", Checkpoint: "99"}, do(result.TaskRunning, "status", "status"), "it is started once")
	assert.Equal(t, "Paused", do(result.TaskPaused, "status", "pause", "status").Task)
	assert.Equal(t, "Paused", do(result.TaskPaused, "status", "status").Task, "it is paused once")
	assert.Equal(t, "Running", do(result.TaskRunning, "status", "resume", "status").Task)
	assert.Equal(t, result.Log{Task: "Stopped", Start: "42", Checkpoint: "99"}, do(result.TaskStopped, "status", "stop"), "how far it came is not lost")
	assert.Equal(t, others(), br.pd.points)
	// A run that was killed has stopped it, and not gone on.
	br.pd.points, c.Log.Begun = append(br.pd.points, cluster.SafePoint{ServiceID: "br-start", SafePoint: 41}, cluster.SafePoint{ServiceID: "pitr_12345678_pause_safepoint", SafePoint: 44}), "42"
	assert.Equal(t, result.Log{Task: "Stopped"}, do(result.TaskStopped, "status"))
	assert.Equal(t, others(), br.pd.points)
	assert.Equal(t, "Running", do(result.TaskRunning, "status", "start", "status").Task, "it goes on in its folder")
}

// Every TiKV has PD hold data back for the task, after each flush for two hours and after an error for
// 24, and those of versions up to v8.5 leave it when the task is stopped.
func TestBR01WhatTiKVHoldsBackForATaskGoesWithIt(t *testing.T) {
	c, br, _ := keeping(t)
	_, err := c.keepLog(t.Context(), io.Discard)
	require.NoError(t, err)
	alien := cluster.SafePoint{ServiceID: "backup-stream-pitr_123456789-1", SafePoint: 44}
	br.pd.points = append(others(), alien)
	for _, id := range []string{"backup-stream-pitr_12345678-1", "backup-stream-pitr_12345678-22", "pitr_12345678-4-pause-guard"} {
		br.pd.points = append(br.pd.points, cluster.SafePoint{ServiceID: id, SafePoint: 44})
	}
	c.Log.State = result.TaskStopped
	_, err = c.keepLog(t.Context(), io.Discard)
	require.NoError(t, err)
	assert.Equal(t, append(others(), alien), br.pd.points)
}

// BR locks the folder before it writes what a log begins with, and takes one that is locked for a log.
func TestBR01AStartThatWasCutOffIsBegunAgain(t *testing.T) {
	for _, begun := range []bool{false, true} {
		c, _, s := keeping(t)
		p, err := c.Storage.Open(t.Context())
		require.NoError(t, err)
		require.NoError(t, p.ClaimLog(t.Context(), c.UID))
		lock := filepath.Join(s.dir, "copies", "prod", "monday", "data", "backup.lock")
		require.NoError(t, p.Blobs.WriteAll(t.Context(), "prod/monday/data/backup.lock", []byte("lock"), nil))
		if begun {
			require.NoError(t, p.Blobs.WriteAll(t.Context(), "prod/monday/data/backupmeta", []byte("meta"), nil))
		}
		require.NoError(t, p.Blobs.Close())
		_, err = c.keepLog(t.Context(), io.Discard)
		require.NoError(t, err)
		if begun {
			assert.FileExists(t, lock, "a log that is there goes on")
			continue
		}
		assert.NoFileExists(t, lock)
	}
}

// BR up to v8.5.0 has no status in its JSON, and refuses to resume a task that runs.
func TestBR01TheStateOfATaskIsKnownInOlderVersions(t *testing.T) {
	c, br, _ := keeping(t)
	br.wordy = true
	do := func(state string, calls ...string) {
		t.Helper()
		br.calls, c.Log.State = nil, state
		out, err := c.keepLog(t.Context(), io.Discard)
		require.NoError(t, err)
		assert.Equal(t, state, out.Log.Task)
		assert.Equal(t, calls, br.calls)
	}
	do(result.TaskRunning, "status", "start", "status", "status")
	do(result.TaskRunning, "status", "status", "status", "status")
	do(result.TaskPaused, "status", "status", "pause", "status", "status")
	do(result.TaskPaused, "status", "status", "status", "status")
	do(result.TaskRunning, "status", "status", "resume", "status", "status")
	do(result.TaskStopped, "status", "status", "stop")
	narrow := func(_ context.Context, tool Process) error {
		_, err := fmt.Fprint(tool.Out, "name: \npitr_12345678\nstatus: \n\x1b[31m○\x1b[0m\x1b[1m ERROR\x1b[0m\n")
		return err
	}
	c.Start = narrow
	status, err := c.fetchStatus(t.Context(), io.Discard)
	require.NoError(t, err)
	assert.Equal(t, taskError, status)
}

func TestBR01ATaskThatAnErrorPausedIsResumedAndReported(t *testing.T) {
	c, br, _ := keeping(t)
	_, err := c.keepLog(t.Context(), io.Discard)
	require.NoError(t, err)
	br.tasks[0].Status = taskError
	require.NoError(t, json.Unmarshal([]byte(`[{"store_id": 4, "last_error": {"error_code": "KV:LogBackup:RaftReq", "error_message": "no room"}}]`), &br.tasks[0].Errors))
	out, err := c.keepLog(t.Context(), io.Discard)
	require.ErrorIs(t, err, errBegun)
	assert.Equal(t, result.Result{
		Reason: v1alpha1.ReasonLogTaskFailed, Message: "TiKV had paused the task: store 4: KV:LogBackup:RaftReq: no room",
		Log: &result.Log{Task: "Running", Start: "42", Checkpoint: "42"},
	}, out)
}

// Why it was paused BR does not say: the operator knows whether the LogBackup had asked for it.
func TestBR01ThatATaskWasPausedIsTold(t *testing.T) {
	c, br, _ := keeping(t)
	_, err := c.keepLog(t.Context(), io.Discard)
	require.NoError(t, err)
	br.tasks[0].Status = taskPaused
	out, err := c.keepLog(t.Context(), io.Discard)
	require.NoError(t, err)
	assert.Equal(t, &result.Log{Task: result.TaskRunning, Was: result.TaskPaused, Start: "42", Checkpoint: "42"}, out.Log)
	out, err = c.keepLog(t.Context(), io.Discard)
	require.NoError(t, err)
	assert.Empty(t, out.Log.Was)
}

func TestBR01TheCauseOfABlockedLogBackupIsNamed(t *testing.T) {
	for name, of := range map[string]struct {
		change        func(*Command, *brOf, server)
		reason, words string
	}{
		"another task": {func(_ *Command, b *brOf, _ server) { b.tasks = []logTask{{Name: "other", Storage: "s3://x/y"}} }, v1alpha1.ReasonLogTaskTaken, "the cluster has the task other already, which writes to s3://x/y"},
		"a gap": {func(_ *Command, b *brOf, _ server) {
			b.fails["start"] = "GC safepoint 9 exceed TS 7: [BR:Backup:ErrBackupGCSafepointExceeded]backup GC safepoint exceeded"
		}, v1alpha1.ReasonLogGap, "exceed TS 7"},
		"a bucket that is missing": {func(c *Command, _ *brOf, _ server) { c.Storage.Bucket = "nothing" }, v1alpha1.ReasonBucketMissing, "it does not exist"},
		"files of another program": {func(_ *Command, _ *brOf, s server) {
			require.NoError(t, os.MkdirAll(filepath.Join(s.dir, "copies", "prod", "monday"), 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(s.dir, "copies", "prod", "monday", "x"), nil, 0o600))
		}, v1alpha1.ReasonFolderTaken, "files that belong to no backup"},
		"PD": {func(_ *Command, b *brOf, _ server) { b.fails["status"] = "context deadline exceeded" }, v1alpha1.ReasonRunFailed, "context deadline exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			c, br, s := keeping(t)
			of.change(&c, br, s)
			_, err := c.keepLog(t.Context(), io.Discard)
			require.Error(t, err)
			r := failure.NewResult(err, v1alpha1.ReasonRunFailed, false)
			assert.Equal(t, of.reason, r.Reason, r.Message)
			assert.Contains(t, r.Message, of.words)
		})
	}
}

func TestBR01ALogIsStoppedWithoutItsBucket(t *testing.T) {
	c, br, _ := keeping(t)
	_, err := c.keepLog(t.Context(), io.Discard)
	require.NoError(t, err)
	c.Storage.Credentials, c.Log.State = t.TempDir(), result.TaskStopped
	_, err = c.keepLog(t.Context(), io.Discard)
	require.NoError(t, err)
	assert.Empty(t, br.tasks)
	assert.Equal(t, others(), br.pd.points)
}

// To look at a task BR asks every store how much it writes, and fails of one that is lost. A LogBackup that
// is deleted must not wait for that store.
func TestBR01ALogIsStoppedWhileAStoreIsLost(t *testing.T) {
	c, br, _ := keeping(t)
	_, err := c.keepLog(t.Context(), io.Discard)
	require.NoError(t, err)
	br.fails["status"] = "failed to get QPS of task pitr_12345678: failed to get count from basic-tikv-1:20180: dial tcp: i/o timeout"
	_, err = c.keepLog(t.Context(), io.Discard)
	assert.Equal(t, v1alpha1.ReasonRunFailed, failure.NewResult(err, "", false).Reason, "TiDB answers")
	c.Log.State, c.Log.Begun = result.TaskStopped, "42"
	for range 2 { // the first run may be killed before it is known how it ended
		out, err := c.keepLog(t.Context(), io.Discard)
		require.NoError(t, err)
		assert.Equal(t, &result.Log{Task: "Stopped"}, out.Log)
		assert.Empty(t, br.tasks)
		assert.Equal(t, others(), br.pd.points)
	}
	br.fails["stop"] = "context deadline exceeded"
	_, err = c.keepLog(t.Context(), io.Discard)
	require.ErrorContains(t, err, "context deadline exceeded", "PD does not answer")
}

// Nor must one that is to be paused, as for the work that brings the store back.
func TestBR01ALogIsPausedWhileAStoreIsLost(t *testing.T) {
	c, br, _ := keeping(t)
	c.Log.State = result.TaskPaused
	br.fails["status"] = "failed to get QPS of task pitr_12345678: failed to get count from basic-tikv-1:20180: dial tcp: i/o timeout"
	_, err := c.keepLog(t.Context(), io.Discard)
	require.ErrorContains(t, err, "failed to get QPS", "it is not known which task there is, and none is started")
	assert.Empty(t, br.tasks)
	delete(br.fails, "status")
	c.Log.State = result.TaskRunning
	_, err = c.keepLog(t.Context(), io.Discard)
	require.NoError(t, err)
	c.Log.State = result.TaskPaused
	br.fails["status"] = "failed to get QPS of task pitr_12345678: failed to get count from basic-tikv-1:20180: dial tcp: i/o timeout"
	for range 2 { // one that is paused stays so
		out, err := c.keepLog(t.Context(), io.Discard)
		require.NoError(t, err)
		assert.Equal(t, &result.Log{Task: "Paused", Was: "Paused"}, out.Log)
		assert.Equal(t, taskPaused, br.tasks[0].Status)
	}
	br.fails["pause"] = "context deadline exceeded"
	_, err = c.keepLog(t.Context(), io.Discard)
	require.ErrorContains(t, err, "context deadline exceeded", "PD does not answer")
}

func TestBR01ALogIsTruncatedInItsOwnFolder(t *testing.T) {
	c, br, _ := keeping(t)
	_, err := c.keepLog(t.Context(), io.Discard)
	require.NoError(t, err)
	var args []string
	c.Start = func(ctx context.Context, tool Process) error {
		if tool.Args[1] == "truncate" {
			args = tool.Args
			assert.Contains(t, tool.Env, "AWS_ACCESS_KEY_ID="+access)
		}
		return br.run(ctx, tool)
	}
	c.Log.Truncate = "77"
	out, err := c.keepLog(t.Context(), io.Discard)
	require.NoError(t, err)
	assert.Equal(t, "77", out.Log.Truncated)
	assert.Equal(t, []string{"log", "truncate", "--until", "77", "--yes", "--storage"}, args[:6])
	c.UID = "of-another"
	_, err = c.keepLog(t.Context(), io.Discard)
	require.ErrorIs(t, err, errBegun)
}

// A bucket may refuse deletions, such as one with a retention policy. The log goes on all the same.
func TestBR01HowFarALogIsIsToldAlthoughItCannotBeTruncated(t *testing.T) {
	for name, of := range map[string]struct {
		change        func(*Command, *brOf)
		reason, words string
	}{
		"the bucket refuses":       {func(_ *Command, b *brOf) { b.fails["truncate"] = "AccessDenied" }, v1alpha1.ReasonStorageRefused, "AccessDenied"},
		"the folder is another's":  {func(c *Command, _ *brOf) { c.UID = "of-another" }, v1alpha1.ReasonFolderTaken, "nothing is deleted"},
		"the keys are not there":   {func(c *Command, _ *brOf) { c.Storage.Credentials = t.TempDir() }, v1alpha1.ReasonMissingReference, "is not there"},
		"a task had an error, too": {func(_ *Command, b *brOf) { b.fails["truncate"], b.tasks[0].Status = "AccessDenied", taskError }, v1alpha1.ReasonLogTaskFailed, "TiKV had paused the task"},
	} {
		t.Run(name, func(t *testing.T) {
			c, br, _ := keeping(t)
			_, err := c.keepLog(t.Context(), io.Discard)
			require.NoError(t, err)
			br.tasks[0].Checkpoint, c.Log.Truncate = 99, "77"
			of.change(&c, br)
			out, err := c.keepLog(t.Context(), io.Discard)
			require.ErrorIs(t, err, errBegun)
			assert.Equal(t, of.reason, out.Reason)
			assert.Contains(t, out.Message, of.words)
			assert.Equal(t, &result.Log{Task: "Running", Start: "42", Checkpoint: "99"}, out.Log)
		})
	}
}

func TestBR01ALogMustReachTheRequestedPointInTime(t *testing.T) {
	has, err := spanIn([]byte("x\n[2022/07/25 23:02:57.236 +08:00] [INFO] [collector.go:69] [\"log metadata\"] [log-min-ts=100] [log-min-date=\"2022\"] [log-max-ts=200] [log-max-date=\"2022\"]\n"))
	require.NoError(t, err)
	assert.Equal(t, span{100, 200}, has)
	_, err = spanIn([]byte("nothing"))
	require.Error(t, err)
	for _, c := range []struct {
		backup, until string
		want          uint64
		words         string
	}{
		{"100", "", 200, ""},
		{"150", "170", 170, ""},
		{"200", "200", 200, ""},
		{"99", "170", 0, "the log begins at"},
		{"150", "201", 0, "the log ends at"},
		{"150", "149", 0, "after the moment that is asked for"},
		{"", "149", 0, "has no time stamp"},
	} {
		to, err := has.restorePoint(c.backup, c.until)
		assert.Equal(t, c.want, to)
		if c.words != "" {
			require.ErrorContains(t, err, c.words)
		}
	}
}

// A moment is restored by one run of BR, from a log that is one and after its span was asked for.
func TestBR01APointInTimeIsRestoredFromABackupAndALog(t *testing.T) {
	c, br, s := keeping(t)
	c.Storage.Folder, c.UID = "prod/pitr", "l"
	_, err := c.keepLog(t.Context(), io.Discard)
	require.NoError(t, err)
	p, err := c.Storage.Open(t.Context())
	require.NoError(t, err)
	defer func() { assert.NoError(t, p.Blobs.Close()) }()
	require.NoError(t, p.CheckIsLog(t.Context(), "l"))
	require.ErrorContains(t, p.CheckIsLog(t.Context(), "other"), "has the log of the LogBackup with UID l")
	require.ErrorContains(t, p.WithFolder("prod/nothing").CheckIsLog(t.Context(), ""), "has no log")
	_, err = p.ReadComplete(t.Context(), "")
	require.ErrorContains(t, err, "name its folder by spec.from.logFolder")
	br.fails["metadata"] = "AccessDenied"
	_, err = c.fetchSpan(t.Context(), p, io.Discard)
	assert.Equal(t, v1alpha1.ReasonStorageRefused, failure.NewResult(err, "", false).Reason)
	assert.True(t, strings.HasPrefix(s.url, "http"))
}
