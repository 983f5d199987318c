package workload_test

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/e2e/workload"
	"github.com/tidb-groups/tidb-groups/e2e/workload/memorydb"
)

// timeout bounds every wait.
const timeout = time.Minute

// at logs in at an address.
func at(address string) func(context.Context) (workload.Login, error) {
	return func(context.Context) (workload.Login, error) {
		return workload.Login{Address: address, User: "root"}, nil
	}
}

// start runs a fast workload.
func start(t *testing.T, address string, c workload.Config) *workload.Run {
	t.Helper()
	return startAt(t, at(address), c)
}

func startAt(t *testing.T, login func(context.Context) (workload.Login, error), c workload.Config) *workload.Run {
	t.Helper()
	c.Login = login
	c.Interval, c.Lifetime = cmp.Or(c.Interval, 20*time.Millisecond), cmp.Or(c.Lifetime, 200*time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	run, err := workload.Start(ctx, c)
	require.NoError(t, err)
	t.Cleanup(func() { run.Abort() })
	return run
}

// operate does something as an operation, after which every session has written again.
func operate(t *testing.T, run *workload.Run, do func()) workload.Operation {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	begun := run.Begin("test")
	do()
	operation, err := begun.End(ctx)
	require.NoError(t, err)
	return operation
}

func finish(t *testing.T, run *workload.Run) workload.Report {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	report, err := run.Finish(ctx)
	require.NoError(t, err)
	return report
}

// until waits until what was seen is as wished.
func until(t *testing.T, run *workload.Run, wish func(workload.Operation) bool) {
	t.Helper()
	require.Eventually(t, func() bool { return wish(run.Now()) }, timeout, time.Millisecond)
}

// user runs a statement beside the workload.
func user(t *testing.T, address, statement string) {
	t.Helper()
	db, err := sql.Open("mysql", "root@tcp("+address+")/tidb_groups_workload")
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	_, err = db.ExecContext(t.Context(), statement)
	require.NoError(t, err)
}

func TestAHealthyDatabaseLosesNothing(t *testing.T) {
	run := start(t, memorydb.Start(t), workload.Config{})
	operation := operate(t, run, func() {})
	report := finish(t, run)
	assert.NoError(t, report.Bad())
	assert.Empty(t, report.Failures)
	assert.Positive(t, operation.Acknowledged)
	assert.GreaterOrEqual(t, report.Whole.Acknowledged, operation.Acknowledged)
	assert.Equal(t, report.Whole.Acknowledged, report.Whole.ReadBack)
	assert.Positive(t, report.Whole.Statements)
	assert.NotEmpty(t, report.Seconds)
	assert.Equal(t, map[string]int{"insert": 4, "transfer": 2, "sum": 1, "prepared": 2}, report.Sessions)
	assert.Equal(t, []string{"the server knows no ADMIN CHECK TABLE"}, report.Notes)
}

func TestErrorsOfADatabaseAreFound(t *testing.T) {
	for name, c := range map[string]struct {
		// does is what goes wrong, by an own statement.
		does, says string
		lost       int
	}{
		"an acknowledged row is gone":        {"DELETE FROM numbers WHERE writer = 1 AND seq = 1", "row (1, 1) of numbers was acknowledged and is not there", 1},
		"a row of a prepared insert is gone": {"DELETE FROM numbers WHERE writer = 8 AND seq = 1", "row (8, 1) of numbers was acknowledged and is not there", 1},
		"a booked transfer is gone":          {"DELETE FROM transfers WHERE writer = 4 AND seq = 1", "row (4, 1) of transfers was acknowledged and is not there", 1},
		"a row is there twice":               {"INSERT INTO numbers SELECT * FROM numbers WHERE writer = 1 AND seq = 1", "row (1, 1) of numbers is there more than once", 0},
		"a transfer is booked twice":         {"INSERT INTO transfers SELECT * FROM transfers WHERE writer = 4 AND seq = 1", "row (4, 1) of transfers is there more than once", 0},
		"a row of no session is there":       {"INSERT INTO numbers VALUES (77, 1, 'x')", "row (77, 1) of numbers is there and was never sent", 0},
		"a row of the future is there":       {"INSERT INTO numbers VALUES (1, 1000000, 'x')", "row (1, 1000000) of numbers is there and was never sent", 0},
		"a row says something else":          {"UPDATE numbers SET content = 'x' WHERE writer = 1 AND seq = 1", `row (1, 1) of numbers says "x"`, 0},
		"a transfer says something else":     {"UPDATE transfers SET amount = 1000 WHERE writer = 4 AND seq = 1", "row (4, 1) of transfers says 1000 from", 0},
		"money comes from nowhere":           {"UPDATE accounts SET balance = balance + 1 WHERE id = 3", "the sum of all balances is 20001 by the server and 20001 row by row, it has to be 20000", 0},
		"money moves without a booking":      {"UPDATE accounts SET balance = balance + IF(id = 3, 1, -1) WHERE id IN (3, 4)", "the balance of account 3 is", 0},
		"an account is gone":                 {"DELETE FROM accounts WHERE id = 3", "a transaction counts 19 accounts and reads 19, there are 20", 0},
	} {
		t.Run(name, func(t *testing.T) {
			address := memorydb.Start(t)
			run := start(t, address, workload.Config{})
			operate(t, run, func() {})
			operation := operate(t, run, func() { user(t, address, c.does) })
			assert.Positive(t, operation.Findings)
			assert.Equal(t, c.lost, operation.Lost)
			report := finish(t, run)
			assert.ErrorContains(t, report.Bad(), c.says)
			assert.Equal(t, c.lost, report.Whole.Lost, "counted once")
			assert.Zero(t, report.Operations[0].Findings)
		})
	}
}

func TestASumThatChangesIsFoundWhileItRuns(t *testing.T) {
	address := memorydb.Start(t)
	run := start(t, address, workload.Config{})
	user(t, address, "UPDATE accounts SET balance = balance - 1 WHERE id = 0")
	until(t, run, func(o workload.Operation) bool { return o.Findings > 0 })
	assert.ErrorContains(t, run.Abort().Bad(), "the sum of all balances is 19999")
}

func TestARowThatCannotBeReadAfterItsAcknowledgementIsFoundWhileItRuns(t *testing.T) {
	address := memorydb.Start(t)
	run := start(t, address, workload.Config{Inserters: -1, Transferrers: -1, Readers: -1, Prepared: 1})
	// The server says yes and writes nothing.
	user(t, address, "CREATE TRIGGER eat BEFORE INSERT ON numbers FOR EACH ROW SET NEW.seq = NEW.seq + 1000000")
	until(t, run, func(o workload.Operation) bool { return o.Findings > 0 })
	assert.ErrorContains(t, run.Abort().Bad(), "0 times right after its acknowledgement")
}

func TestAStallIsAPauseAndAGapAndNoFailure(t *testing.T) {
	proxy := memorydb.NewProxy(t, memorydb.Start(t))
	run := start(t, proxy.Address(), workload.Config{Slow: 400 * time.Millisecond, Lifetime: time.Hour})
	operate(t, run, func() {})
	const stall = 600 * time.Millisecond
	operation := operate(t, run, func() {
		proxy.Stall()
		over := time.NewTimer(stall)
		<-over.C
		proxy.Resume()
	})
	// Sessions may have been in the middle of a turn's interval when it began.
	assert.GreaterOrEqual(t, operation.Pause.Duration, stall-100*time.Millisecond)
	assert.GreaterOrEqual(t, operation.Gap.Duration, stall-100*time.Millisecond)
	assert.Zero(t, operation.Failed+operation.FailedLong)
	report := finish(t, run)
	assert.NoError(t, report.Bad())
	assert.Empty(t, report.Failures)
	assert.GreaterOrEqual(t, len(report.Pauses), len(report.Sessions))
	assert.NotEmpty(t, report.Gaps)
}

func TestAPauseAtTheEndOfAnOperationIsKnownWhole(t *testing.T) {
	server := memorydb.Start(t)
	first, second := memorydb.NewProxy(t, server), memorydb.NewProxy(t, server)
	var moved atomic.Bool
	run := startAt(t, either(first, second, &moved), workload.Config{Lifetime: time.Hour})
	operate(t, run, func() {})
	const stall = 2 * time.Second
	operation := operate(t, run, func() {
		moved.Store(true) // the rows are read back by a way that is free
		first.Stall()
		over := time.AfterFunc(stall, first.Resume)
		t.Cleanup(func() { over.Stop() })
	})
	assert.GreaterOrEqual(t, operation.Pause.Duration, stall-100*time.Millisecond)
}

// either logs in by the first proxy, and by the second one once moved is set.
func either(first, second *memorydb.Proxy, moved *atomic.Bool) func(context.Context) (workload.Login, error) {
	return func(ctx context.Context) (workload.Login, error) {
		if moved.Load() {
			return at(second.Address())(ctx)
		}
		return at(first.Address())(ctx)
	}
}

func TestAConnectionThatIsClosedBetweenTurnsIsNoFailure(t *testing.T) {
	proxy := memorydb.NewProxy(t, memorydb.Start(t))
	run := start(t, proxy.Address(), workload.Config{
		Inserters: -1, Transferrers: -1, Readers: -1, Prepared: 1, Interval: 3 * time.Second,
	})
	// Two statements are a turn: now most of three seconds pass without any.
	before := 0
	until(t, run, func(o workload.Operation) bool { before = o.Statements; return before > 0 && before%2 == 0 })
	proxy.Cut()
	until(t, run, func(o workload.Operation) bool { return o.Statements > before })
	report := finish(t, run)
	assert.NoError(t, report.Bad())
	assert.Empty(t, report.Failures)
	assert.Equal(t, 1, report.Whole.Reconnections)
}

func TestAStatementWithoutAnAnswerIsFailedAndNotSentAgain(t *testing.T) {
	proxy := memorydb.NewProxy(t, memorydb.Start(t))
	run := start(t, proxy.Address(), workload.Config{Transferrers: -1, Readers: -1, Lifetime: time.Hour})
	operate(t, run, func() {})
	swallow := func() {
		proxy.Mute(true)
		before := run.Now().Statements
		// Whatever is under way when its answers are swallowed stays so.
		over := time.NewTimer(200 * time.Millisecond)
		<-over.C
		assert.Less(t, run.Now().Statements-before, 12)
		proxy.Cut()
		proxy.Mute(false)
	}
	operation := operate(t, run, swallow)
	// On a busy machine the server may not have come to any of them.
	for begin := time.Now(); time.Since(begin) < timeout && (operation.FailedLong == 0 || operation.ReadBack <= operation.Acknowledged); {
		operation = operate(t, run, swallow)
	}
	assert.Positive(t, operation.Failed)
	assert.Positive(t, operation.FailedLong)
	report := finish(t, run)
	assert.NoError(t, report.Bad(), "a row whose statement failed may be there")
	assert.Greater(t, report.Whole.ReadBack, report.Whole.Acknowledged, "some of the failed statements were executed")
}

func TestAStatementIsFailedWhenItsDeadlineIsOver(t *testing.T) {
	proxy := memorydb.NewProxy(t, memorydb.Start(t))
	run := start(t, proxy.Address(), workload.Config{Deadline: 500 * time.Millisecond})
	operate(t, run, func() {})
	proxy.Stall()
	until(t, run, func(o workload.Operation) bool { return o.Failed > 0 && o.FailedLong > 0 })
	proxy.Resume()
	operate(t, run, func() {})
	report := finish(t, run)
	assert.NoError(t, report.Bad())
	assert.Contains(t, report.Failures[0].Error, "deadline exceeded")
}

func TestRefusedConnectionsAreTriedAgainAndCounted(t *testing.T) {
	proxy := memorydb.NewProxy(t, memorydb.Start(t))
	run := start(t, proxy.Address(), workload.Config{})
	operate(t, run, func() {})
	operation := operate(t, run, func() {
		proxy.Refuse(true) // connections are 200 ms old at most
		until(t, run, func(o workload.Operation) bool { return o.Refused > 10 })
		proxy.Refuse(false)
	})
	assert.Greater(t, operation.Refused, 10)
	assert.Zero(t, operation.Failed)
	report := finish(t, run)
	assert.NoError(t, report.Bad())
	assert.NotEmpty(t, report.Refusals[0].Error)
}

func TestWithoutAConnectionAStatementIsFailedAndItsRowNotThere(t *testing.T) {
	proxy := memorydb.NewProxy(t, memorydb.Start(t))
	run := start(t, proxy.Address(), workload.Config{Deadline: 300 * time.Millisecond})
	operate(t, run, func() {})
	proxy.Refuse(true)
	until(t, run, func(o workload.Operation) bool { return o.Failed > 5 })
	proxy.Refuse(false)
	operate(t, run, func() {})
	report := finish(t, run)
	assert.NoError(t, report.Bad())
	assert.True(t, slices.ContainsFunc(report.Failures, func(f workload.Failure) bool {
		return strings.Contains(f.Error, "no connection within the deadline")
	}), "%v", report.Failures)
}

func TestTheLoginIsAskedForBeforeEachConnection(t *testing.T) {
	server := memorydb.Start(t)
	first, second := memorydb.NewProxy(t, server), memorydb.NewProxy(t, server)
	var moved atomic.Bool
	run := startAt(t, either(first, second, &moved), workload.Config{})
	operate(t, run, func() {})
	operate(t, run, func() {
		moved.Store(true)
		first.Refuse(true)
		first.Cut()
	})
	assert.NoError(t, finish(t, run).Bad())
}

func TestAnInvalidWorkloadIsRefused(t *testing.T) {
	login := at("127.0.0.1:1")
	for says, c := range map[string]workload.Config{
		"needs a login":        {},
		`database "a;b"`:       {Login: login, Database: "a;b"},
		"a transfer needs":     {Login: login, Accounts: 1},
		"must not be negative": {Login: login, Interval: -1},
		"split 9":              {Login: login, Split: 9},
		"needs a session":      {Login: login, Inserters: -1, Transferrers: -1, Readers: -1, Prepared: -1},
	} {
		_, err := workload.Start(t.Context(), c)
		assert.ErrorContains(t, err, says)
	}
}

func TestWithoutADatabaseStartEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	_, err := workload.Start(ctx, workload.Config{Login: at("127.0.0.1:1")})
	assert.ErrorContains(t, err, "make tables of the workload")
	assert.ErrorContains(t, err, "refused")
}
