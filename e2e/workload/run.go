package workload

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// listed is how many failures and refusals a report lists.
const listed = 1000

// Run is a workload on its way.
type Run struct {
	config    Config
	db        *sql.DB
	server    string
	recorder  *recorder
	numbers   *ledger
	transfers *ledger
	sessions  []*session

	stop    chan struct{}
	stopped sync.Once
	cancel  context.CancelFunc
	done    sync.WaitGroup

	lock       sync.Mutex
	notes      []string
	told       map[string]bool
	operations []*Span
	marks      []Mark
	ended      time.Duration
}

// Start makes the tables, as often as it takes until ctx ends, and lets the sessions begin.
// They go on after ctx, until Finish or Abort.
func Start(ctx context.Context, c Config) (*Run, error) {
	c, err := c.complete()
	if err != nil {
		return nil, err
	}
	if err := createDatabase(ctx, c); err != nil {
		return nil, err
	}
	r := &Run{config: c, numbers: newLedger(), transfers: newLedger(), stop: make(chan struct{}), told: map[string]bool{}}
	if r.db, err = openDatabase(c, c.Database); err != nil {
		return nil, err
	}
	if err := r.db.QueryRowContext(ctx, "SELECT VERSION()").Scan(&r.server); err != nil {
		return nil, errors.Join(fmt.Errorf("ask for the server's version: %w", err), r.db.Close())
	}
	r.recorder = newRecorder()
	for _, s := range []struct {
		kind     string
		n        int
		lifetime time.Duration
	}{
		{kindInsert, c.Inserters, c.Lifetime}, {kindTransfer, c.Transferrers, c.Lifetime}, {kindSum, c.Readers, c.Lifetime}, {kindPrepared, c.Prepared, 0},
	} {
		for range s.n {
			r.add(s.kind, s.lifetime)
		}
	}
	ctx, r.cancel = context.WithCancel(context.WithoutCancel(ctx))
	for _, s := range r.sessions {
		r.done.Go(func() { s.loop(ctx, r.stop) })
	}
	return r, nil
}

func (r *Run) add(kind string, lifetime time.Duration) {
	id := len(r.sessions)
	r.sessions = append(r.sessions, &session{id: id, kind: kind, run: r, client: client{
		db: r.db, lifetime: lifetime,
		refused:     func(err error) { r.recorder.refuse(id, err) },
		reconnected: r.recorder.reconnect,
	}})
}

// Span is an operation that has begun.
type Span struct {
	run       *Run
	name      string
	begin     time.Duration
	findings  int
	end       time.Duration // of an operation that has ended
	settled   time.Duration // when every session had had a success since
	checked   Checked
	afterward int // findings after its check
}

// Begin marks the begin of an operation.
func (r *Run) Begin(name string) *Span {
	s := &Span{run: r, name: name, begin: r.recorder.now(), findings: len(r.seen().findings)}
	r.lock.Lock()
	defer r.lock.Unlock()
	r.operations = append(r.operations, s)
	return s
}

// End marks the end of an operation, waits until every session has had a success since, so
// that what it has begun is known whole, and reads everything back. It is an error if that does
// not succeed before ctx ends.
func (s *Span) End(ctx context.Context) (Operation, error) {
	end := s.run.recorder.now()
	settle, cancel := context.WithTimeout(ctx, s.run.config.Deadline)
	s.run.recorder.settled(settle, end, len(s.run.sessions))
	cancel()
	settled := s.run.recorder.now()
	checked, err := s.run.Check(ctx)
	seen := s.run.seen()
	s.run.lock.Lock()
	defer s.run.lock.Unlock()
	s.end, s.settled, s.checked, s.afterward = end, settled, checked, len(seen.findings)
	return s.operation(seen), err
}

// operation is what was seen of the span.
func (s *Span) operation(all seen) Operation {
	end, settled, findings := s.end, s.settled, s.afterward
	if end == 0 { // it has not ended
		end, settled, findings = all.until, all.until, len(all.findings)
	}
	o := Operation{
		Name: s.name, Started: s.run.recorder.start.Add(s.begin), Took: roundDuration(end - s.begin),
		Acknowledged: s.checked.Acknowledged, ReadBack: s.checked.ReadBack, Lost: s.checked.Lost, Findings: findings - s.findings,
	}
	all.count(&o, s.run.recorder.start, interval{s.begin, settled})
	return o
}

// Mark adds marks to the report; what was before the start is left out.
func (r *Run) Mark(marks ...Mark) {
	r.lock.Lock()
	defer r.lock.Unlock()
	for _, m := range marks {
		if !m.At.Before(r.recorder.start) {
			r.marks = append(r.marks, m)
		}
	}
}

// seen is what was seen until now.
func (r *Run) seen() seen {
	r.recorder.lock.Lock()
	defer r.recorder.lock.Unlock()
	return seen{
		until: cmp.Or(r.ended, r.recorder.now()), samples: slices.Clone(r.recorder.samples), failures: slices.Clone(r.recorder.failures),
		refusals: slices.Clone(r.recorder.refusals), reconnections: slices.Clone(r.recorder.reconnections),
		running: maps.Clone(r.recorder.running), findings: slices.Clone(r.recorder.findings),
	}
}

// Finish lets every session end its turn, reads everything back for the last time and
// reports. An error says that the rows could not be read before ctx ended; what is not as it has to be is
// in the report, see [Report.Bad].
func (r *Run) Finish(ctx context.Context) (Report, error) {
	r.stopped.Do(func() { close(r.stop) })
	r.done.Wait() // no longer than the deadlines of a turn's statements
	r.recorder.lock.Lock()
	r.ended = r.recorder.now()
	r.recorder.lock.Unlock()
	checked, err := r.Check(ctx)
	r.cancel()
	return r.report(checked), errors.Join(err, r.db.Close())
}

// Abort ends the sessions in the middle of what they do, and reports what was seen until then,
// without reading anything.
func (r *Run) Abort() Report {
	r.cancel()
	r.done.Wait()
	// Nothing runs on the connections any more.
	_ = r.db.Close()
	return r.report(Checked{})
}

// report puts together what was seen.
func (r *Run) report(checked Checked) Report {
	all := r.seen()
	r.lock.Lock()
	defer r.lock.Unlock()
	whole := Span{run: r, name: "all", end: all.until, settled: all.until, checked: checked, afterward: len(all.findings)}
	out := Report{
		Server: r.server, Started: r.recorder.start, Took: roundDuration(all.until), Sessions: map[string]int{},
		Whole: whole.operation(all), Findings: all.findings, Notes: r.notes,
		Failures: all.failures[:min(len(all.failures), listed)], Refusals: all.refusals[:min(len(all.refusals), listed)],
		Seconds: all.seconds(r.recorder.start), Marks: slices.SortedFunc(slices.Values(r.marks), func(a, b Mark) int { return a.At.Compare(b.At) }),
	}
	for _, s := range r.sessions {
		out.Sessions[s.kind]++
	}
	for _, s := range r.operations {
		o := s.operation(all)
		out.Operations = append(out.Operations, o)
		out.Whole.Lost += o.Lost
	}
	for _, p := range all.pauses() {
		if p.took() >= r.config.Slow {
			out.Pauses = append(out.Pauses, Pause{Session: p.session, Kind: r.sessions[p.session].kind, Began: r.recorder.start.Add(p.begin), Took: roundDuration(p.took())})
		}
	}
	for _, g := range all.gaps() {
		if g.took() >= r.config.Slow {
			out.Gaps = append(out.Gaps, Pause{Session: -1, Began: r.recorder.start.Add(g.begin), Took: roundDuration(g.took())})
		}
	}
	return out
}

// Now is what was seen until now, as one operation; nothing is read back for it.
func (r *Run) Now() Operation {
	all := r.seen()
	whole := Span{run: r, name: "all"}
	return whole.operation(all)
}
