package runner

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/tidb-groups/tidb-groups/operators/backup/result"
)

// leave writes a result where Kubernetes reads it.
func leave(r result.Result, path string) error {
	text, err := r.Encode()
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, text, 0o600); err != nil { //nolint:gosec // whose Job it is names the file
		return fmt.Errorf("write result: %w", err)
	}
	return nil
}

// failure is an error of which the reason is known.
type failure struct {
	reason string
	err    error
}

func (f *failure) Error() string { return f.err.Error() }

func (f *failure) Unwrap() error { return f.err }

// fail is an error with a reason.
func fail(reason, format string, args ...any) error {
	return &failure{reason, fmt.Errorf(format, args...)}
}

// resultOf turns an error into a result; secrets are not told.
func resultOf(err error, otherwise string, begun bool, secrets ...string) result.Result {
	out := result.Result{Reason: otherwise, Message: err.Error(), Begun: begun}
	var known *failure
	if errors.As(err, &known) {
		out.Reason = known.reason
	}
	for _, secret := range secrets {
		if secret != "" {
			out.Message = strings.ReplaceAll(out.Message, secret, "***")
		}
	}
	return out
}
