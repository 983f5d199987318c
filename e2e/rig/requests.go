package rig

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"k8s.io/client-go/transport"

	"github.com/tidb-groups/tidb-groups/e2e/apirequest"
)

// Requests counts what the operators ask of the API server.
type Requests struct {
	mu     sync.Mutex
	counts map[Request]int
}

// Request is one kind of request.
type Request struct {
	// Operator that sends it.
	Operator string
	// Verb as RBAC names it.
	Verb string
	// Resource, with the subresource after a slash.
	Resource string
}

// String renders the request on one line.
func (r Request) String() string { return r.Operator + " " + r.Verb + " " + r.Resource }

// Writes says whether the request may change something.
func (r Request) Writes() bool { return apirequest.Writes(r.Verb) }

// wrap returns the wrapper of an operator's transport.
func (q *Requests) wrap(operator string) transport.WrapperFunc {
	return func(next http.RoundTripper) http.RoundTripper {
		return counting{requests: q, operator: operator, next: next}
	}
}

// Counts returns how often each kind of request was sent.
func (q *Requests) Counts() map[Request]int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return maps.Clone(q.counts)
}

// Since returns the requests that were sent after a former Counts.
func (q *Requests) Since(before map[Request]int) map[Request]int {
	out := map[Request]int{}
	for request, count := range q.Counts() {
		if more := count - before[request]; more > 0 {
			out[request] = more
		}
	}
	return out
}

// ByVerb adds requests up by verb, those for Events apart.
func ByVerb(counts map[Request]int) string {
	sums := map[string]int{}
	for request, count := range counts {
		if request.Resource == "events" {
			sums["events"] += count
			continue
		}
		sums[request.Verb] += count
	}
	var parts []string
	for _, verb := range slices.Sorted(maps.Keys(sums)) {
		parts = append(parts, fmt.Sprintf("%s %d", verb, sums[verb]))
	}
	return strings.Join(parts, ", ")
}

type counting struct {
	requests *Requests
	operator string
	next     http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (c counting) RoundTrip(req *http.Request) (*http.Response, error) {
	request := Request{Operator: c.operator, Verb: "discover", Resource: req.URL.Path}
	if r := apirequest.Of(req); r.Verb != "" {
		request.Verb, request.Resource = r.Verb, r.Resource
		if r.Subresource != "" {
			request.Resource += "/" + r.Subresource
		}
	}
	c.requests.mu.Lock()
	c.requests.counts[request]++
	c.requests.mu.Unlock()
	return c.next.RoundTrip(req)
}
