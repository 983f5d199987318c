package result

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	// maxText is how many bytes of a container's message Kubernetes keeps.
	maxText = 4096
	// maxMessage leaves room for what the operator adds, in characters.
	maxMessage = 600
)

// Result of a run.
type Result struct {
	// Reason of a failure, one of the condition reasons; empty for success.
	Reason string `json:"reason,omitempty"`
	// Message says what failed.
	Message string `json:"message,omitempty"`
	// Begun says that the run had begun to write when it failed. One that had not may be
	// tried again.
	Begun bool `json:"begun,omitempty"`
	// Bytes of the files.
	Bytes int64 `json:"bytes,omitempty"`
	// TSO that the copy shows the database at.
	TSO string `json:"tso,omitempty"`
	// Log is how far a log backup is, nil for other runs.
	Log *Log `json:"log,omitempty"`
}

// Tasks of a log backup.
const (
	TaskRunning = "Running"
	TaskPaused  = "Paused"
	TaskStopped = "Stopped"
)

// Log is how far a log backup is. Start is the time stamp that it begins at, Checkpoint the one
// up to which it is complete, and Truncated the one before which it was just deleted. Was is
// TaskPaused if the task was found so, and without an error.
type Log struct {
	Task       string `json:"task"`
	Was        string `json:"was,omitempty"`
	Start      string `json:"start,omitempty"`
	Checkpoint string `json:"checkpoint,omitempty"`
	Truncated  string `json:"truncated,omitempty"`
}

// isValid reports whether a log backup reports what one can.
func (l *Log) isValid() bool {
	return l == nil || slices.Contains([]string{TaskRunning, TaskPaused, TaskStopped}, l.Task) &&
		isTSO(l.Start) && isTSO(l.Checkpoint) && isTSO(l.Truncated)
}

// isTSO reports whether a text is a time stamp of TiDB, or none.
func isTSO(text string) bool {
	_, err := strconv.ParseUint(text, 10, 64)
	return text == "" || err == nil
}

// Read reads what a run has left; false if it is no Result. Whatever runs in a pod may
// have written it.
func Read(text string) (Result, bool) {
	var out Result
	if len(text) > maxText || json.Unmarshal([]byte(text), &out) != nil || out.Bytes < 0 || !isTSO(out.TSO) || !out.Log.isValid() {
		return Result{}, false
	}
	out.Message = OneLine(out.Message)
	return out, true
}

// Encode writes a result.
func (r Result) Encode() ([]byte, error) {
	r.Message = OneLine(r.Message)
	out, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encode result: %w", err)
	}
	return out, nil
}

// OneLine makes of a text one line that is not too long.
func OneLine(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " ")
	if utf8.RuneCountInString(text) > maxMessage {
		text = string([]rune(text)[:maxMessage-1]) + "…"
	}
	return text
}
