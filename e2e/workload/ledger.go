package workload

import (
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"sync"
)

// row is the name of a row: who wrote it, and the how manieth of this writer it is, from 1.
type row struct {
	writer int
	seq    int64
}

func (r row) String() string { return fmt.Sprintf("(%d, %d)", r.writer, r.seq) }

// content is what stands in a row: a text that says which row it is, so that a row with
// the content of another one is found out.
func (r row) content() string {
	return fmt.Sprintf("%d/%d/%08x", r.writer, r.seq, crc32.ChecksumIEEE(fmt.Appendf(nil, "%d %d", r.writer, r.seq)))
}

// fate is what is known of a row.
type fate uint8

const (
	// acknowledged by the server: it has to be there.
	acknowledged fate = iota
	// unknown rows may be there: their statement failed, or runs.
	unknown
	// absent rows must not be there: their statement was never sent.
	absent
)

// ledger is what is known of the rows of one table.
type ledger struct {
	lock sync.Mutex
	// last is the seq that each writer has used last.
	last map[int]int64
	// other are the rows that are not acknowledged.
	other map[row]fate
}

func newLedger() *ledger { return &ledger{last: map[int]int64{}, other: map[row]fate{}} }

// next names the next row of a writer; it is unknown until settled.
func (l *ledger) next(writer int) row {
	l.lock.Lock()
	defer l.lock.Unlock()
	l.last[writer]++
	r := row{writer, l.last[writer]}
	l.other[r] = unknown
	return r
}

// settle says what has become of a row.
func (l *ledger) settle(r row, f fate) {
	l.lock.Lock()
	defer l.lock.Unlock()
	if f == acknowledged {
		delete(l.other, r)
	} else {
		l.other[r] = f
	}
}

// state is a ledger at one moment.
type state struct {
	last  map[int]int64
	other map[row]fate
}

func (l *ledger) state() state {
	l.lock.Lock()
	defer l.lock.Unlock()
	return state{maps.Clone(l.last), maps.Clone(l.other)}
}

// acknowledged counts the rows that have to be there.
func (s state) acknowledged() int {
	out := -len(s.other)
	for _, last := range s.last {
		out += int(last)
	}
	return out
}

// has says whether the row was ever named.
func (s state) has(r row) bool { return r.seq >= 1 && r.seq <= s.last[r.writer] }

// flaws is what is wrong with the rows of a table.
type flaws struct {
	// lost rows were acknowledged and are not there.
	lost []row
	// doubled rows are there more than once.
	doubled []row
	// foreign rows are there although they were never sent.
	foreign []row
}

// compareRows holds the rows of a table, each with how often it is there, against what was known before and
// after they were read.
func compareRows(found map[row]int, before, after state) flaws {
	var out flaws
	for writer, last := range before.last {
		for seq := int64(1); seq <= last; seq++ {
			r := row{writer, seq}
			if _, other := before.other[r]; !other && found[r] == 0 {
				out.lost = append(out.lost, r)
			}
		}
	}
	for r, n := range found {
		if n > 1 {
			out.doubled = append(out.doubled, r)
		}
		if !after.has(r) || after.other[r] == absent {
			out.foreign = append(out.foreign, r)
		}
	}
	for _, rows := range [][]row{out.lost, out.doubled, out.foreign} {
		slices.SortFunc(rows, func(a, b row) int {
			if a.writer != b.writer {
				return a.writer - b.writer
			}
			return int(a.seq - b.seq)
		})
	}
	return out
}
