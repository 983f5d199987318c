package drain

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tidb-groups/tidb-groups/shared/hook"
	"github.com/tidb-groups/tidb-groups/shared/httpclient"
)

const (
	// connections is TiProxy's metric of the clients that are connected to it.
	connections = "tiproxy_server_connections"
	// poll is how often clients are counted, by default.
	poll = time.Second
	// perCall bounds one look at the metrics.
	perCall = 3 * time.Second
	// maxFailures is how many looks in a row may fail before clients are not waited for.
	maxFailures = 5
	// maxAnswer bounds what is read of the metrics, in bytes.
	maxAnswer = 16 << 20
	// unknown is the number of clients before they were counted.
	unknown = -1
)

// errNoMetric is the error of a TiProxy that does not count its clients.
var errNoMetric = errors.New("it does not show " + connections)

// Job is what is done for one TiProxy.
type Job struct {
	// Metrics is the URL of its metrics.
	Metrics string
	// Delay for which new connections may still come, because load balancers have not
	// noticed yet that the pod has left the Service.
	Delay time.Duration
	// Within is for how long clients may close their connections after that.
	Within time.Duration
	// Poll is how often clients are counted; 1 s if zero.
	Poll time.Duration
	// TLS is how it is asked over TLS.
	TLS hook.TLS
	// Say reports progress to the user; nil reports none.
	Say hook.Say
}

// Stop waits for Delay, and then until no client is connected, at most for Within. An
// error says how many clients are left to TiProxy, which closes their connections between
// two transactions, or why they could not be counted.
func (j Job) Stop(ctx context.Context) error {
	if j.Delay > 0 && !hook.Pause(ctx, j.Delay) {
		return fmt.Errorf("wait for load balancers: %w", context.Cause(ctx))
	}
	if j.Within <= 0 {
		return nil // the user leaves clients no time
	}
	ctx, cancel := context.WithTimeout(ctx, j.Within)
	defer cancel()
	left, failed := unknown, 0
	var why error
	for {
		now, err := j.count(ctx)
		switch {
		case err == nil && now == 0:
			j.Say.Logf("no client is connected")
			return nil
		case err == nil:
			left, failed = now, 0
		case ctx.Err() != nil:
			why = cmp.Or(why, err)
		case errors.Is(err, errNoMetric):
			return fmt.Errorf("clients cannot be waited for: %w", err)
		default:
			if failed++; failed == maxFailures {
				return fmt.Errorf("clients cannot be waited for: %w", err)
			}
			why = err
		}
		if hook.Pause(ctx, cmp.Or(j.Poll, poll)) {
			continue
		}
		if left == unknown {
			return fmt.Errorf("how many clients are left is not known, no look succeeded within %s: %w", j.Within, why)
		}
		return fmt.Errorf("clients have not closed %d connections within %s", left, j.Within)
	}
}

// count returns how many clients are connected.
func (j Job) count(ctx context.Context) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, perCall)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, j.Metrics, http.NoBody)
	if err != nil {
		return 0, fmt.Errorf("make request: %w", err)
	}
	transport, err := j.TLS.LocalTransport()
	if err != nil {
		return 0, err
	}
	defer transport.CloseIdleConnections()
	response, err := httpclient.New(transport).Do(request)
	if err != nil {
		return 0, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("get %s: %s", j.Metrics, response.Status)
	}
	text, err := httpclient.ReadAll(response.Body, maxAnswer)
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", j.Metrics, err)
	}
	return sumMetric(text)
}

// sumMetric adds up the values of the metric, in the text format of Prometheus.
func sumMetric(text []byte) (int, error) {
	total, found := 0.0, false
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, maxAnswer)
	for lines.Scan() {
		rest, is := strings.CutPrefix(lines.Text(), connections)
		if !is || rest == "" || rest[0] != ' ' && rest[0] != '{' {
			continue
		}
		if rest[0] == '{' {
			rest = rest[strings.LastIndex(rest, "}")+1:]
		}
		fields := strings.Fields(rest)
		if len(fields) == 0 {
			continue
		}
		value, err := strconv.ParseFloat(fields[0], 64)
		if err != nil {
			return 0, fmt.Errorf("read %s: %w", connections, err)
		}
		total, found = total+value, true
	}
	if err := lines.Err(); err != nil {
		return 0, fmt.Errorf("read metrics: %w", err)
	}
	if !found {
		return 0, errNoMetric
	}
	return int(total), nil
}
