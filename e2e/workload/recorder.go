package workload

import (
	"context"
	"sync"
	"time"
)

// sample is one statement that has ended, by the time since the start.
type sample struct {
	session  int
	due, end time.Duration
	failed   bool
}

// recorder keeps what was seen, in the order of its ends.
type recorder struct {
	start time.Time

	lock     sync.Mutex
	samples  []sample
	failures []Failure
	refusals []Refusal
	// reconnections are the times at which a session found its connection closed.
	reconnections []time.Duration
	// running is since when each session has waited for a success; those that wait for
	// nothing are left out.
	running map[int]time.Duration
	// succeeded is when each session had its last success.
	succeeded map[int]time.Duration
	findings  []Finding
	// changed is closed at the next success.
	changed chan struct{}
}

func newRecorder() *recorder {
	return &recorder{start: time.Now(), running: map[int]time.Duration{}, succeeded: map[int]time.Duration{}, changed: make(chan struct{})}
}

// now is the time since the start.
func (r *recorder) now() time.Duration { return time.Since(r.start) }

// begin notes that a statement is due.
func (r *recorder) begin(session int) time.Duration {
	r.lock.Lock()
	defer r.lock.Unlock()
	now := r.now()
	if _, waits := r.running[session]; !waits {
		r.running[session] = now
	}
	return now
}

// cancel forgets a statement that the workload itself has ended.
func (r *recorder) cancel(session int) {
	r.lock.Lock()
	defer r.lock.Unlock()
	delete(r.running, session)
}

// end notes that a statement has ended.
func (r *recorder) end(s *session, due time.Duration, err error) {
	r.lock.Lock()
	defer r.lock.Unlock()
	now := r.now()
	r.samples = append(r.samples, sample{session: s.id, due: due, end: now, failed: err != nil})
	if err != nil {
		r.failures = append(r.failures, Failure{
			Session: s.id, Kind: s.kind, Long: s.lifetime == 0, Due: r.start.Add(due), Took: roundDuration(now - due), Error: shortenError(err),
		})
		return
	}
	delete(r.running, s.id)
	r.succeeded[s.id] = now
	close(r.changed)
	r.changed = make(chan struct{})
}

// refuse notes that a connection was refused.
func (r *recorder) refuse(session int, err error) {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.refusals = append(r.refusals, Refusal{At: r.start.Add(r.now()), Session: session, Error: shortenError(err)})
}

// reconnect notes that a connection was found closed before a statement was sent.
func (r *recorder) reconnect() {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.reconnections = append(r.reconnections, r.now())
}

// find notes that something is not as it has to be.
func (r *recorder) find(what string) {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.findings = append(r.findings, Finding{At: r.start.Add(r.now()), What: what})
}

// settled waits until every session has had a success since a time, or ctx ends.
func (r *recorder) settled(ctx context.Context, since time.Duration, sessions int) {
	for {
		r.lock.Lock()
		n, changed := 0, r.changed
		for _, at := range r.succeeded {
			if at > since {
				n++
			}
		}
		r.lock.Unlock()
		if n == sessions {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// seen is what a recorder has seen until a moment.
type seen struct {
	until         time.Duration
	samples       []sample
	failures      []Failure
	refusals      []Refusal
	reconnections []time.Duration
	running       map[int]time.Duration
	findings      []Finding
}
