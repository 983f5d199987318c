package rig

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"k8s.io/client-go/transport"

	"github.com/tidb-groups/tidb-groups/e2e/apirequest"
	"github.com/tidb-groups/tidb-groups/e2e/scenario"
)

// Request is one kind of request.
type Request = scenario.Request

// errSevered is what an operator that was cut off gets for every request.
var errSevered = errors.New("the operator is cut off from the API server")

// Requests counts what the operators ask of the API server.
type Requests struct {
	wrote func(n int, request Request)

	mu        sync.Mutex
	counts    map[Request]int
	writesIn  map[string]int // by namespace
	conflicts map[Request]int
	writes    int
	refused   []string
}

// Counts returns how often each kind of request was sent.
func (q *Requests) Counts() map[Request]int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return maps.Clone(q.counts)
}

// Since returns the requests that were sent after a former Counts.
func (q *Requests) Since(before map[Request]int) map[Request]int {
	return subtractCounts(q.Counts(), before)
}

// subtractCounts is what one count has more than another.
func subtractCounts(after, before map[Request]int) map[Request]int {
	out := map[Request]int{}
	for request, count := range after {
		if n := count - before[request]; n > 0 {
			out[request] = n
		}
	}
	return out
}

// Conflicts returns how often each kind of request was answered with a conflict: the
// operator had not seen the newest version, changed nothing, and tried again.
func (q *Requests) Conflicts() map[Request]int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return maps.Clone(q.conflicts)
}

// ConflictsSince returns the conflicts that came after a former Conflicts.
func (q *Requests) ConflictsSince(before map[Request]int) map[Request]int {
	return subtractCounts(q.Conflicts(), before)
}

// Writes is how many writes were answered, with success or without.
func (q *Requests) Writes() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.writes
}

// WritesIn is how many writes were sent that name a namespace.
func (q *Requests) WritesIn(namespace string) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.writesIn[namespace]
}

// Refused returns what an operator asked for and was not allowed, one line each with
// the API server's answer. A quota and a namespace that ends refuse in the same way.
func (q *Requests) Refused() []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.refused)
}

// refuse notes an answer that refuses, which is read as a whole: it is a few lines long.
func (q *Requests) refuse(operator string, req *http.Request, response *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(response.Body, longestRefusal))
	if err != nil {
		return fmt.Errorf("read why %s %s is refused: %w", req.Method, req.URL.Path, err)
	}
	response.Body = readCloser{io.MultiReader(bytes.NewReader(body), response.Body), response.Body}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.refused = append(q.refused, fmt.Sprintf("%s: %s %s: %s: %s", operator, req.Method, req.URL.RequestURI(), response.Status, strings.ToValidUTF8(string(body), "")))
	return nil
}

// longestRefusal is how many bytes of an answer are kept.
const longestRefusal = 4096

// readCloser reads what was read already once more.
type readCloser struct {
	io.Reader
	io.Closer
}

// line is the way of one run of an operator to the API server.
type line struct {
	requests *Requests
	operator string
	severed  chan struct{} // closed when it is cut
	cut      func()
}

func (q *Requests) line(operator string, ended func()) *line {
	severed := make(chan struct{})
	return &line{requests: q, operator: operator, severed: severed, cut: sync.OnceFunc(func() { close(severed); ended() })}
}

// wrap is the wrapper of the operator's transport.
func (l *line) wrap(next http.RoundTripper) http.RoundTripper { return counting{l, next} }

var _ transport.WrapperFunc = (*line)(nil).wrap

func (l *line) isSevered() bool {
	select {
	case <-l.severed:
		return true
	default:
		return false
	}
}

type counting struct {
	line *line
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper. An operator that is cut off while its
// request is on the way never sees the answer, but what it wrote stays written.
func (c counting) RoundTrip(req *http.Request) (*http.Response, error) {
	if c.line.isSevered() {
		return nil, errSevered
	}
	request, namespace := classifyRequest(req)
	request.Operator = c.line.operator
	q := c.line.requests
	q.mu.Lock()
	q.counts[request]++
	if request.Writes() {
		q.writesIn[namespace]++
	}
	q.mu.Unlock()
	response, err := c.next.RoundTrip(req)
	if err == nil && (response.StatusCode == http.StatusForbidden || response.StatusCode == http.StatusUnauthorized) {
		if err := q.refuse(c.line.operator, req, response); err != nil {
			return nil, errors.Join(err, response.Body.Close())
		}
	}
	if err == nil && response.StatusCode == http.StatusConflict {
		q.mu.Lock()
		q.conflicts[request]++
		q.mu.Unlock()
	}
	if request.Writes() {
		q.mu.Lock()
		q.writes++
		n := q.writes
		q.mu.Unlock()
		if q.wrote != nil {
			q.wrote(n, request)
		}
	}
	if err == nil && c.line.isSevered() {
		_ = response.Body.Close() // its reader is gone
		return nil, errSevered
	}
	return response, err
}

// classifyRequest says which kind of request it is, and in which namespace.
func classifyRequest(req *http.Request) (request Request, namespace string) {
	r := apirequest.Parse(req)
	switch {
	case r.Verb == "":
		return Request{Verb: "discover", Resource: req.URL.Path}, ""
	case r.Subresource != "":
		return Request{Verb: r.Verb, Resource: r.Resource + "/" + r.Subresource}, r.Namespace
	default:
		return Request{Verb: r.Verb, Resource: r.Resource}, r.Namespace
	}
}
