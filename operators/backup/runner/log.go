package runner

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/backup/cluster"
	"github.com/tidb-groups/tidb-groups/operators/backup/failure"
	"github.com/tidb-groups/tidb-groups/operators/backup/result"
	"github.com/tidb-groups/tidb-groups/operators/backup/storage"
)

// What BR says that a task of log backup is.
const (
	taskNormal = "NORMAL"
	taskPaused = "PAUSE"
	taskError  = "ERROR"
)

// logTask is a task of log backup, as br log status --json reports it.
type logTask struct {
	Name       string `json:"name"`
	Start      uint64 `json:"start_ts"`
	Status     string `json:"status"`
	Checkpoint uint64 `json:"checkpoint"`
	Storage    string `json:"storage"`
	Errors     []struct {
		Store uint64 `json:"store_id"`
		Error struct {
			Code    string `json:"error_code"`
			Message string `json:"error_message"`
		} `json:"last_error"`
	} `json:"last_errors"`
}

// keepLog brings the task of a LogBackup to what it is to be, and says how far it is. Doing it
// again does nothing more: each time what is there is looked at first.
func (c Command) keepLog(ctx context.Context, log io.Writer) (result.Result, error) {
	own, err := c.fetchTask(ctx, log)
	isUnseen := err != nil
	if isUnseen {
		own, err = c.changeUnseenTask(ctx, log, err)
	}
	if err != nil {
		return result.Result{}, err
	}
	failed, was := own.listErrors(), ""
	if own != nil && own.Status == taskPaused {
		was = result.TaskPaused
	}
	if err := c.changeTask(ctx, log, own); err != nil {
		return result.Result{}, err
	}
	out, told := result.Result{}, &result.Log{Task: result.TaskStopped}
	if c.Log.Truncate != "" {
		// The log goes on although it cannot be truncated, and how far it is is told.
		if err := c.truncate(ctx, log); err != nil {
			out = failure.NewResult(err, v1alpha1.ReasonRunFailed, false)
		} else {
			told.Truncated = c.Log.Truncate
		}
	}
	if c.Log.State != result.TaskStopped && !isUnseen {
		if own, err = c.fetchTask(ctx, log); err != nil {
			return result.Result{}, err
		}
		failed = append(failed, own.listErrors()...)
	}
	own.fillIn(told, c.Log.State)
	out.Log, told.Was = told, was
	if len(failed) > 0 && c.Log.State != result.TaskStopped {
		out.Reason, out.Message = v1alpha1.ReasonLogTaskFailed, "TiKV had paused the task: "+failed[0]
	}
	if out.Reason != "" {
		return out, errBegun
	}
	return out, nil
}

// listErrors says what errors have paused a task; none if none has.
func (t *logTask) listErrors() []string {
	if t == nil || t.Status != taskError {
		return nil
	}
	out := []string{}
	for _, e := range t.Errors {
		out = append(out, fmt.Sprintf("store %d: %s: %s", e.Store, e.Error.Code, e.Error.Message))
	}
	return append(out, "BR gave no reason")
}

// fillIn fills in what is known of a task, after it was brought to a state; one that is not there is stopped.
func (t *logTask) fillIn(out *result.Log, state string) {
	switch {
	case t == nil:
		return
	case state != result.TaskStopped && t.Status == taskNormal:
		out.Task = result.TaskRunning
	case state != result.TaskStopped:
		out.Task = result.TaskPaused
	}
	if t.Start > 0 { // it was seen
		out.Start, out.Checkpoint = strconv.FormatUint(t.Start, 10), strconv.FormatUint(max(t.Checkpoint, t.Start), 10)
	}
}

// changeTask starts, pauses, resumes or stops the task.
func (c Command) changeTask(ctx context.Context, log io.Writer, own *logTask) error {
	if c.Log.State == result.TaskStopped {
		return c.stopTask(ctx, log, own)
	}
	if own == nil {
		if err := c.startTask(ctx, log); err != nil {
			return err
		}
		own = &logTask{Status: taskNormal}
	}
	switch {
	case c.Log.State == result.TaskPaused && own.Status == taskNormal:
		return c.runBR(ctx, log, nil, "pause")
	case c.Log.State == result.TaskRunning && own.Status != taskNormal:
		return c.runBR(ctx, log, nil, "resume")
	}
	return nil
}

// startTask starts the task in the folder of the LogBackup. In one that has its log already, BR
// goes on where that ends.
func (c Command) startTask(ctx context.Context, log io.Writer) error {
	p, err := c.Storage.Open(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = p.Blobs.Close() }() // nothing was left unwritten
	if err := p.ClaimLog(ctx, c.UID); err != nil {
		return err
	}
	if err := p.RemoveUnfinishedStart(ctx); err != nil {
		return err
	}
	return c.runBR(ctx, log, p, "start", "--storage", p.URL())
}

// stopTask stops the task, and removes what PD holds back for it, also if a run that was
// killed has stopped it before.
func (c Command) stopTask(ctx context.Context, log io.Writer, own *logTask) error {
	begun := c.Log.Begun
	if own != nil {
		begun = strconv.FormatUint(own.Start, 10)
		if err := c.runBR(ctx, log, nil, "stop"); err != nil {
			return err
		}
	}
	return c.Cluster.RemoveSafePoints(ctx, func(s cluster.SafePoint) bool {
		return s.IsForTask(c.Log.Task) || s.IsHeldByBR() && strconv.FormatUint(s.SafePoint+1, 10) == begun
	})
}

// changeUnseenTask stops or pauses a task that BR cannot tell about, because of unseen: for that it asks
// every store, of which one may be lost, and for this PD alone. One that is not there has been stopped.
func (c Command) changeUnseenTask(ctx context.Context, log io.Writer, unseen error) (*logTask, error) {
	verb := map[string]string{result.TaskStopped: "stop", result.TaskPaused: "pause"}[c.Log.State]
	if verb == "" {
		return nil, unseen
	}
	err := c.runBR(ctx, log, nil, verb)
	switch said := fmt.Sprint(err); {
	case verb == "pause" && (err == nil || strings.Contains(said, "paused already")):
		return &logTask{Status: taskPaused}, nil
	case verb == "stop" && strings.Contains(said, "ErrTaskNotFound"):
		return nil, nil //nolint:nilnil // none is an answer
	case strings.Contains(said, "ErrTaskNotFound"):
		return nil, unseen
	}
	return nil, err
}

// truncate deletes the log before a time stamp, if it is the LogBackup's.
func (c Command) truncate(ctx context.Context, log io.Writer) error {
	p, err := c.Storage.Open(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = p.Blobs.Close() }() // nothing was written
	m, err := p.Marker(ctx)
	switch {
	case err != nil:
		return err
	case m == nil || m.UID != c.UID || !m.Log:
		return failure.New(v1alpha1.ReasonFolderTaken, "folder %s of %s has no log of this LogBackup: nothing is deleted", p.Folder, p.Name())
	}
	pod, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("read the name of the pod: %w", err)
	}
	if err := p.RemoveStaleLock(ctx, pod); err != nil {
		return err
	}
	return c.runTool(ctx, log, append(p.Env(), logToTerminal), []string{"log", "truncate", "--until", c.Log.Truncate, "--yes", "--storage", p.URL()})
}

// runBR runs a command about the task; p is nil for one that asks PD alone.
func (c Command) runBR(ctx context.Context, log io.Writer, p *storage.Place, verb string, more ...string) error {
	env := []string{logToTerminal}
	if p != nil {
		env = append(env, p.Env()...)
	}
	return c.runTool(ctx, log, env, slices.Concat([]string{"log", verb, "--task-name", c.Log.Task}, c.Cluster.Args(), more))
}

// fetchTask asks for the task, nil if the cluster has none. One that belongs to another owner is refused:
// a cluster has one.
func (c Command) fetchTask(ctx context.Context, log io.Writer) (*logTask, error) {
	var said bytes.Buffer
	args := append([]string{"log", "status", "--json"}, c.Cluster.Args()...)
	if err := c.runTool(ctx, io.MultiWriter(log, &said), []string{logToTerminal}, args); err != nil {
		return nil, err
	}
	all, err := tasksIn(said.Bytes())
	if err != nil {
		return nil, err
	}
	for i, t := range all {
		if t.Name != c.Log.Task {
			continue
		}
		if t.Status == "" {
			all[i].Status, err = c.fetchStatus(ctx, log)
		}
		return &all[i], err
	}
	if len(all) > 0 && c.Log.State != result.TaskStopped {
		return nil, failure.New(v1alpha1.ReasonLogTaskTaken, "the cluster has the task %s already, which writes to %s, and it can have one: stop that one first, or delete this LogBackup", all[0].Name, all[0].Storage)
	}
	return nil, nil //nolint:nilnil // none is an answer
}

// fetchStatus asks for what the task is in words, which BR up to v8.5.0 leaves out of its JSON.
func (c Command) fetchStatus(ctx context.Context, log io.Writer) (string, error) {
	var said bytes.Buffer
	if err := c.runBR(ctx, io.MultiWriter(log, &said), nil, "status"); err != nil {
		return "", err
	}
	found := regexp.MustCompile(`(?m)^ *status:[^A-Z]*(` + taskNormal + `|` + taskPaused + `|` + taskError + `)\b`).FindSubmatch(said.Bytes())
	if found == nil {
		return "", errors.New("br log status wrote no status of task " + c.Log.Task)
	}
	return string(found[1]), nil
}

// tasksIn finds the tasks in what br log status --json writes, among lines of its log.
func tasksIn(said []byte) ([]logTask, error) {
	for line := range bytes.Lines(said) {
		var out []logTask
		if json.Unmarshal(line, &out) == nil {
			return out, nil
		}
	}
	return nil, errors.New("br log status --json wrote no tasks")
}
