package failure

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tidb-groups/tidb-groups/operators/backup/result"
)

// Failure is an error of which the reason is known.
type Failure struct {
	reason string
	err    error
}

// Error implements error.
func (f *Failure) Error() string { return f.err.Error() }

// Unwrap returns what the error is made from.
func (f *Failure) Unwrap() error { return f.err }

// New is an error with a reason.
func New(reason, format string, args ...any) error {
	return &Failure{reason, fmt.Errorf(format, args...)}
}

// NewResult turns an error into a result; secrets are not printed.
func NewResult(err error, otherwise string, begun bool, secrets ...string) result.Result {
	out := result.Result{Reason: otherwise, Message: err.Error(), Begun: begun}
	var known *Failure
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
