package runner

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

const (
	// tailBytes is how much of a tool's output is kept to tell what it failed of.
	tailBytes = 8 << 10
	// stopTimeout is how long a tool has to end when it is told to.
	stopTimeout = 10 * time.Second
)

// tail keeps the end of what is written to it.
type tail struct{ text []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.text = append(t.text, p...)
	if extra := len(t.text) - tailBytes; extra > 0 {
		t.text = append(t.text[:0], t.text[extra:]...)
	}
	return len(p), nil
}

// last is what the tool says that it failed of, and without that its last words. Behind
// that may come a stack.
func (t *tail) last() string {
	failed := regexp.MustCompile(`(?i)^(dump failed|create dumper failed|.*parse arguments.*failed|parsing arguments.*|tidb lightning encountered error): `)
	words, said := "", ""
	for line := range bytes.Lines(t.text) {
		text := strings.TrimSpace(string(line))
		if text != "" {
			words = text
		}
		if failed.MatchString(text) {
			said = text
		}
	}
	return cmp.Or(said, words)
}

// runTool runs a tool to its end. What it says goes to the container's log.
func (c Command) runTool(ctx context.Context, log io.Writer, env, args []string) error {
	said := &tail{}
	cmd := exec.CommandContext(ctx, c.Tool, args...) //nolint:gosec // whose Job it is names the tool
	cmd.Env = append(os.Environ(), env...)
	cmd.Dir = c.Scratch
	out := io.MultiWriter(log, said)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopTimeout
	err := cmd.Run()
	var ended *exec.ExitError
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fail(v1alpha1.ReasonRunFailed, "the run was told to stop")
	case errors.As(err, &ended):
		last := said.last()
		return fail(toolReason(last), "%s (%w)", last, err)
	}
	return fmt.Errorf("run %s: %w", c.Tool, err)
}

// toolReason tells from a tool's last words of what kind its failure is.
func toolReason(words string) string {
	for _, c := range []struct{ reason, pattern string }{
		{v1alpha1.ReasonStorageFull, `no space left on device|disk quota exceeded|QuotaExceeded`},
		{v1alpha1.ReasonBucketMissing, `NoSuchBucket`},
		{v1alpha1.ReasonStorageRefused, `AccessDenied|InvalidAccessKeyId|SignatureDoesNotMatch|permission denied|read-only file system`},
		{v1alpha1.ReasonCertificateInvalid, `x509: `},
		{v1alpha1.ReasonLoginRefused, `Error (1044|1045|1142|1143|1227|8121) `},
		{v1alpha1.ReasonDatabaseUnreachable, `Error 2003|invalid connection|bad connection|driver: bad|connect: connection refused|i/o timeout`},
	} {
		if regexp.MustCompile(c.pattern).MatchString(words) {
			return c.reason
		}
	}
	return v1alpha1.ReasonRunFailed
}
