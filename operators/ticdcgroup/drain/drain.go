package drain

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/tidb-groups/tidb-groups/shared/hook"
	"github.com/tidb-groups/tidb-groups/shared/httpclient"
)

const (
	// poll is how often the capture is asked, by default.
	poll = time.Second
	// perCall bounds one call.
	perCall = 5 * time.Second
	// maxFailures is how many steps in a row may fail before the capture stops as it is.
	maxFailures = 10
	// maxAnswer bounds what is read of an answer, in bytes.
	maxAnswer = 1 << 20
)

// errUnsupported is the error of a capture that does not know a call: its version has none.
var errUnsupported = errors.New("this version of TiCDC cannot be drained")

// Job is what is done for one capture.
type Job struct {
	// API is the base URL of its HTTP API. What only the owner can do, a capture passes on
	// to it.
	API string
	// Within is for how long it may take.
	Within time.Duration
	// Poll is how often the capture is asked; 1 s if zero.
	Poll time.Duration
	// TLS is how it is asked over TLS.
	TLS hook.TLS
	// Say reports progress to the user; nil reports none.
	Say hook.Say
}

// Stop has the capture resign if it is the owner, and the others take its tables, at most
// for Within. It returns at once if there is no other capture. An error says what is left:
// the others take it all the same, when they miss this one.
func (j Job) Stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, j.Within)
	defer cancel()
	last, failed := errors.New("it was not asked"), 0
	for {
		done, err := j.step(ctx)
		switch {
		case ctx.Err() != nil:
		case done:
			j.Say.Logf("nothing is left to hand over")
			return nil
		case errors.Is(err, errUnsupported):
			return err
		case errors.As(err, new(waiting)):
			last, failed = err, 0
		case err != nil:
			if last, failed = err, failed+1; failed == maxFailures {
				return fmt.Errorf("the capture stops as it is: %w", err)
			}
		}
		if !hook.Pause(ctx, cmp.Or(j.Poll, poll)) {
			return fmt.Errorf("the capture stops after %s: %w", j.Within, last)
		}
	}
}

// waiting is what is waited for.
type waiting string

func (w waiting) Error() string { return string(w) }

// step does what is to be done next. The error is waiting if that is under way.
func (j Job) step(ctx context.Context) (done bool, err error) {
	var self struct {
		ID    string `json:"id"`
		Owner bool   `json:"is_owner"`
	}
	if err := j.call(ctx, http.MethodGet, "/api/v1/status", nil, &self); err != nil {
		return false, err
	}
	var captures []struct {
		ID string `json:"id"`
	}
	if err := j.call(ctx, http.MethodGet, "/api/v1/captures", nil, &captures); err != nil {
		return false, err
	}
	if len(captures) <= 1 {
		return true, nil
	}
	if self.Owner {
		j.Say.Logf("resigning as owner")
		if err := j.call(ctx, http.MethodPost, "/api/v1/owner/resign", nil, nil); err != nil {
			return false, err
		}
		return false, waiting("it is still the owner")
	}
	var left struct {
		Tables int `json:"current_table_count"`
	}
	if err := j.call(ctx, http.MethodPut, "/api/v1/captures/drain", map[string]string{"capture_id": self.ID}, &left); err != nil {
		return false, err
	}
	if left.Tables > 0 {
		return false, waiting(fmt.Sprintf("it still copies %d tables", left.Tables))
	}
	return true, nil
}

// call makes one call. TiCDC postpones some while it has no owner, or drains another capture.
func (j Job) call(ctx context.Context, method, path string, body, into any) error {
	ctx, cancel := context.WithTimeout(ctx, perCall)
	defer cancel()
	var sent io.Reader = http.NoBody
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return fmt.Errorf("encode: %w", err)
		}
		sent = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, j.API+path, sent)
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	request.Header.Set("Content-Type", "application/json")
	transport, err := j.TLS.LocalTransport()
	if err != nil {
		return err
	}
	defer transport.CloseIdleConnections()
	response, err := httpclient.New(transport).Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := httpclient.ReadAll(response.Body, maxAnswer)
	switch {
	case err != nil:
		return fmt.Errorf("read answer to %s: %w", path, err)
	case response.StatusCode == http.StatusNotFound:
		return errUnsupported
	case isPostponed(response.StatusCode, answer):
		return waiting("TiCDC has no owner, or drains another capture")
	case response.StatusCode/100 != 2:
		return fmt.Errorf("%s %s: %s", method, path, response.Status)
	case into == nil:
		return nil
	}
	if err := json.Unmarshal(answer, into); err != nil {
		return fmt.Errorf("decode answer to %s: %w", path, err)
	}
	return nil
}

// isPostponed reports whether an answer says that TiCDC cannot do what was asked yet. That is 503,
// and in its new architecture, whose captures are drained from v8.5.7 on, 400 with this code.
func isPostponed(status int, answer []byte) bool {
	return status == http.StatusServiceUnavailable || status == http.StatusBadRequest && bytes.Contains(answer, []byte("CDC:ErrSchedulerRequestFailed"))
}
