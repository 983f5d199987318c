package workload

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
)

// contents is what the tables hold at one moment.
type contents struct {
	// numbers and transfers are the rows, each with how often it is there.
	numbers   map[row]int
	transfers map[row]int
	// damaged rows do not say what was written.
	damaged []string
	// count and sum of the checksums of numbers, by the server and over what was read.
	serverCount, serverSum, count, sum int64
	// balances by account, what the server adds them up to, and what the transfers make of them.
	balances      map[int]int64
	total, number int64
	booked        map[int]int64
}

const (
	allNumbers   = "SELECT writer, seq, content FROM numbers"
	allTransfers = "SELECT writer, seq, source, target, amount FROM transfers"
	checksum     = "SELECT COUNT(*), CAST(COALESCE(SUM(CRC32(content)), 0) AS SIGNED) FROM numbers"
)

// readContents reads everything in one transaction.
func readContents(ctx context.Context, conn *sql.Conn, accounts int) (contents, error) {
	c := contents{numbers: map[row]int{}, transfers: map[row]int{}, booked: map[int]int64{}}
	if _, err := conn.ExecContext(ctx, "BEGIN"); err != nil {
		return c, fmt.Errorf("begin transaction: %w", err)
	}
	if err := scanRows(ctx, conn, allNumbers, c.numberRow); err != nil {
		return c, fmt.Errorf("read numbers: %w", err)
	}
	if err := scanRows(ctx, conn, allTransfers, func(rows *sql.Rows) error { return c.transfer(rows, accounts) }); err != nil {
		return c, fmt.Errorf("read transfers: %w", err)
	}
	var err error
	if c.balances, err = readBalances(ctx, conn); err != nil {
		return c, fmt.Errorf("read accounts: %w", err)
	}
	if err := conn.QueryRowContext(ctx, sumBalances).Scan(&c.number, &c.total); err != nil {
		return c, fmt.Errorf("add balances up: %w", err)
	}
	if err := conn.QueryRowContext(ctx, checksum).Scan(&c.serverCount, &c.serverSum); err != nil {
		return c, fmt.Errorf("read checksum: %w", err)
	}
	if _, err := conn.ExecContext(ctx, "COMMIT"); err != nil {
		return c, fmt.Errorf("end transaction: %w", err)
	}
	return c, nil
}

// numberRow takes in a row of numbers.
func (c *contents) numberRow(rows *sql.Rows) error {
	var r row
	var text string
	if err := rows.Scan(&r.writer, &r.seq, &text); err != nil {
		return err
	}
	c.numbers[r]++
	c.count++
	c.sum += int64(crc32.ChecksumIEEE([]byte(text)))
	if text != r.content() {
		c.damaged = append(c.damaged, fmt.Sprintf("row %s of numbers says %q, %q was written", r, text, r.content()))
	}
	return nil
}

// transfer takes in a row of transfers.
func (c *contents) transfer(rows *sql.Rows, accounts int) error {
	var r row
	var source, target int
	var amount int64
	if err := rows.Scan(&r.writer, &r.seq, &source, &target, &amount); err != nil {
		return err
	}
	c.transfers[r]++
	c.booked[source] -= amount
	c.booked[target] += amount
	if s, t, a := transferOf(r, accounts); s != source || t != target || a != amount {
		c.damaged = append(c.damaged, fmt.Sprintf("row %s of transfers says %d from %d to %d, %d from %d to %d was written", r, amount, source, target, a, s, t))
	}
	return nil
}

// judge says what is wrong with the contents but for their rows.
func (c *contents) judge(accounts int) []string {
	out := slices.Clone(c.damaged)
	if c.serverCount != c.count || c.serverSum != c.sum {
		out = append(out, fmt.Sprintf("the server counts %d rows of numbers with a checksum of %d, %d with %d were read", c.serverCount, c.serverSum, c.count, c.sum))
	}
	out = append(out, sumsWrong(accounts, c.number, c.total, c.balances)...)
	for id := range accounts {
		if want := balance + c.booked[id]; c.balances[id] != want {
			out = append(out, fmt.Sprintf("the balance of account %d is %d, the booked transfers make it %d", id, c.balances[id], want))
		}
	}
	return out
}

// Checked is what a check has counted.
type Checked struct {
	// Acknowledged rows that had to be there, and ReadBack how many rows were read.
	Acknowledged int
	ReadBack     int
	// Lost rows that no check before has missed.
	Lost int
}

// Check reads everything back, while the sessions go on, and adds to the findings what is not
// as it has to be; each lost, doubled or foreign row once in the life of the workload. Reading is repeated until it succeeds or ctx
// ends, which is an error: then nothing is known.
func (r *Run) Check(ctx context.Context) (out Checked, err error) {
	err = repeatUntilSuccess(ctx, func() (err error) {
		out, err = r.check(ctx)
		return err
	})
	if err != nil {
		return out, fmt.Errorf("read the rows back: %w", err)
	}
	return out, nil
}

func (r *Run) check(ctx context.Context) (out Checked, err error) {
	conn, err := r.db.Conn(ctx)
	if err != nil {
		return out, err
	}
	defer func() {
		if closed := conn.Close(); err == nil && !errors.Is(closed, sql.ErrConnDone) {
			err = closed
		}
	}()
	numbers, transfers := r.numbers.state(), r.transfers.state()
	found, err := readContents(ctx, conn, r.config.Accounts)
	if err != nil {
		return out, err
	}
	var wrong, notes []string
	for _, table := range []string{"numbers", "transfers", "accounts"} {
		_, err := conn.ExecContext(ctx, "ADMIN CHECK TABLE "+table)
		switch {
		case err == nil:
		case strings.Contains(err.Error(), "syntax error"):
			notes = append(notes, "the server knows no ADMIN CHECK TABLE")
		case isServerError(err):
			wrong = append(wrong, fmt.Sprintf("ADMIN CHECK TABLE %s: %v", table, err))
		default:
			return out, fmt.Errorf("check table %s: %w", table, err)
		}
	}
	ofNumbers := compareRows(found.numbers, numbers, r.numbers.state())
	ofTransfers := compareRows(found.transfers, transfers, r.transfers.state())
	r.lock.Lock()
	defer r.lock.Unlock()
	for _, note := range notes {
		if !slices.Contains(r.notes, note) {
			r.notes = append(r.notes, note)
		}
	}
	for _, what := range append(found.judge(r.config.Accounts), wrong...) {
		r.recorder.find(what)
	}
	for table, f := range map[string]flaws{"numbers": ofNumbers, "transfers": ofTransfers} {
		out.Lost += r.once(table, "was acknowledged and is not there", f.lost)
		r.once(table, "is there more than once", f.doubled)
		r.once(table, "is there and was never sent", f.foreign)
	}
	out.Acknowledged = numbers.acknowledged() + transfers.acknowledged()
	out.ReadBack = len(found.numbers) + len(found.transfers)
	return out, nil
}

// named is how many rows a finding names.
const named = 10

// once adds a finding on those rows on which there is none of the kind yet, and counts them.
func (r *Run) once(table, what string, rows []row) int {
	var fresh []string
	for _, one := range rows {
		key := fmt.Sprintf("row %s of %s %s", one, table, what)
		if !r.told[key] {
			r.told[key] = true
			fresh = append(fresh, key)
		}
	}
	for i, text := range fresh {
		if i == named {
			r.recorder.find(fmt.Sprintf("and %d more rows: each %s", len(fresh)-named, what))
			break
		}
		r.recorder.find(text)
	}
	return len(fresh)
}
