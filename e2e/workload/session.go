package workload

import (
	"context"
	"database/sql"
	"fmt"
	"hash/fnv"
	"time"
)

// The kinds of sessions.
const (
	kindInsert   = "insert"
	kindTransfer = "transfer"
	kindSum      = "sum"
	kindPrepared = "prepared"
)

// balance of every account at the beginning.
const balance = 1000

// session is one goroutine that takes turns on one connection of its own.
type session struct {
	id   int
	kind string
	run  *Run
	client
}

// loop takes turns until stop is closed.
func (s *session) loop(ctx context.Context, stop <-chan struct{}) {
	defer s.drop()
	// The sessions spread over the interval.
	next := time.NewTimer(s.run.config.Interval * time.Duration(s.id) / time.Duration(len(s.run.sessions)))
	defer next.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ctx.Done():
			return
		case <-next.C:
		}
		begin := time.Now()
		s.turn(ctx)
		next.Reset(max(0, s.run.config.Interval-time.Since(begin)))
	}
}

func (s *session) turn(ctx context.Context) {
	switch s.kind {
	case kindInsert:
		r := s.run.numbers.next(s.id)
		s.run.numbers.settle(r, s.first(ctx, execStatement(insertNumber, r.writer, r.seq, r.content())))
	case kindTransfer:
		s.transfer(ctx)
	case kindSum:
		s.sum(ctx)
	case kindPrepared:
		s.prepare(ctx)
	}
}

// action is one statement.
type action func(ctx context.Context, conn *sql.Conn) error

func execStatement(text string, args ...any) action {
	return func(ctx context.Context, conn *sql.Conn) error {
		_, err := conn.ExecContext(ctx, text, args...)
		return err
	}
}

// first runs a statement outside of a transaction: on another connection if it
// was provably not sent on the one before.
func (s *session) first(ctx context.Context, do action) fate {
	limited, cancel := context.WithTimeout(ctx, s.run.config.Deadline)
	defer cancel()
	due := s.run.recorder.begin(s.id)
	for {
		conn, err := s.ready(limited)
		if err != nil {
			return s.ended(ctx, due, absent, err)
		}
		switch err = do(limited, conn); {
		case isUnsent(err) && limited.Err() == nil:
			s.drop()
			s.reconnected()
		case isUnsent(err):
			return s.ended(ctx, due, absent, err)
		default:
			return s.ended(ctx, due, unknown, err)
		}
	}
}

// then runs a statement of a transaction that has begun on the present connection.
func (s *session) then(ctx context.Context, do action) fate {
	limited, cancel := context.WithTimeout(ctx, s.run.config.Deadline)
	defer cancel()
	due := s.run.recorder.begin(s.id)
	err := do(limited, s.conn)
	if isUnsent(err) {
		return s.ended(ctx, due, absent, err)
	}
	return s.ended(ctx, due, unknown, err)
}

// ended records a statement; failed is what has become of its row if there is an error.
func (s *session) ended(ctx context.Context, due time.Duration, failed fate, err error) fate {
	s.after(err)
	if err != nil && ctx.Err() != nil {
		s.run.recorder.cancel(s.id) // the workload itself was ended
		return failed
	}
	s.run.recorder.end(s, due, err)
	if err != nil {
		return failed
	}
	return acknowledged
}

// transferOf is what a row of transfers says: who pays whom how much. It follows from
// the name of the row, so that a row with another one's content is found out.
func transferOf(r row, accounts int) (source, target int, amount int64) {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %d", r.writer, r.seq)
	n := h.Sum64()
	source = int(n % uint64(accounts))
	target = (source + 1 + int(n>>20%uint64(accounts-1))) % accounts
	return source, target, int64(n>>40%50) + 1
}

func (s *session) transfer(ctx context.Context) {
	r := s.run.transfers.next(s.id)
	source, target, amount := transferOf(r, s.run.config.Accounts)
	pay, earn := execStatement(addBalance, -amount, source), execStatement(addBalance, amount, target)
	if source > target {
		pay, earn = earn, pay // always in the same order, so that no two wait for each other
	}
	if s.first(ctx, execStatement("BEGIN")) != acknowledged {
		s.run.transfers.settle(r, absent)
		return
	}
	for _, do := range []action{pay, earn, execStatement(insertTransfer, r.writer, r.seq, source, target, amount)} {
		if s.then(ctx, do) != acknowledged {
			s.drop() // the server rolls back
			s.run.transfers.settle(r, absent)
			return
		}
	}
	f := s.then(ctx, execStatement("COMMIT"))
	if f != acknowledged {
		s.drop()
	}
	s.run.transfers.settle(r, f)
}

func (s *session) sum(ctx context.Context) {
	var count, total int64
	var each map[int]int64
	if s.first(ctx, execStatement("BEGIN")) != acknowledged {
		return
	}
	add := func(ctx context.Context, conn *sql.Conn) error {
		return conn.QueryRowContext(ctx, sumBalances).Scan(&count, &total)
	}
	read := func(ctx context.Context, conn *sql.Conn) (err error) {
		each, err = readBalances(ctx, conn)
		return err
	}
	for _, do := range []action{add, read, execStatement("COMMIT")} {
		if s.then(ctx, do) != acknowledged {
			s.drop()
			return
		}
	}
	for _, what := range sumsWrong(s.run.config.Accounts, count, total, each) {
		s.run.recorder.find(what)
	}
}

// sumsWrong says what is wrong with the balances that one transaction has read twice.
func sumsWrong(accounts int, count, total int64, each map[int]int64) []string {
	var out []string
	sum := int64(0)
	for _, b := range each {
		sum += b
	}
	want := int64(accounts) * balance
	if int(count) != accounts || len(each) != accounts {
		out = append(out, fmt.Sprintf("a transaction counts %d accounts and reads %d, there are %d", count, len(each), accounts))
	}
	if total != want || sum != want {
		out = append(out, fmt.Sprintf("the sum of all balances is %d by the server and %d row by row, it has to be %d", total, sum, want))
	}
	return out
}

func (s *session) prepare(ctx context.Context) {
	r := s.run.numbers.next(s.id)
	write := func(ctx context.Context, _ *sql.Conn) error {
		statement, err := s.statement(ctx, insertNumber)
		if err == nil {
			_, err = statement.ExecContext(ctx, r.writer, r.seq, r.content())
		}
		return err
	}
	f := s.first(ctx, write)
	s.run.numbers.settle(r, f)
	if f != acknowledged {
		return
	}
	found := 0
	read := func(ctx context.Context, _ *sql.Conn) error {
		statement, err := s.statement(ctx, countNumber)
		if err == nil {
			err = statement.QueryRowContext(ctx, r.writer, r.seq, r.content()).Scan(&found)
		}
		return err
	}
	if s.first(ctx, read) == acknowledged && found != 1 {
		s.run.recorder.find(fmt.Sprintf("row %s of numbers is there %d times right after its acknowledgement", r, found))
	}
}
