package workload

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestRowsAreComparedWithTheLedger(t *testing.T) {
	l := newLedger()
	var rows []row
	for range 4 {
		rows = append(rows, l.next(1))
	}
	l.settle(rows[0], acknowledged)
	l.settle(rows[1], unknown)
	l.settle(rows[2], absent)
	// rows[3] is under way.
	s := l.state()
	assert.Equal(t, 1, s.acknowledged())
	later := row{1, 5}
	for name, c := range map[string]struct {
		found map[row]int
		want  flaws
	}{
		"all is well":                         {map[row]int{rows[0]: 1}, flaws{}},
		"unknown rows may be there":           {map[row]int{rows[0]: 1, rows[1]: 1, rows[3]: 1}, flaws{}},
		"unknown rows may not be there twice": {map[row]int{rows[0]: 1, rows[1]: 2}, flaws{doubled: rows[1:2]}},
		"acknowledged rows have to be there":  {nil, flaws{lost: rows[:1]}},
		"rows never sent must not be there":   {map[row]int{rows[0]: 1, rows[2]: 1}, flaws{foreign: rows[2:3]}},
		"nothing else may be there":           {map[row]int{rows[0]: 1, later: 1}, flaws{foreign: []row{later}}},
	} {
		assert.Equal(t, c.want, compareRows(c.found, s, s), name)
	}
	// What was written while the rows were read may be among them or not.
	assert.Equal(t, later, l.next(1))
	l.settle(later, acknowledged)
	assert.Equal(t, flaws{}, compareRows(map[row]int{rows[0]: 1, later: 1}, s, l.state()))
	assert.Equal(t, flaws{}, compareRows(map[row]int{rows[0]: 1}, s, l.state()))
}

func TestAPauseLastsFromTheFirstFailureToTheNextSuccess(t *testing.T) {
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	s := seen{
		until: ms(1000), running: map[int]time.Duration{2: ms(400)},
		samples: []sample{
			{session: 1, due: ms(0), end: ms(10)},
			{session: 1, due: ms(100), end: ms(150), failed: true},
			{session: 2, due: ms(120), end: ms(160)},
			{session: 1, due: ms(200), end: ms(260), failed: true},
			{session: 1, due: ms(300), end: ms(310)},
		},
	}
	assert.Equal(t, []pause{
		{interval{ms(0), ms(10)}, 1}, {interval{ms(120), ms(160)}, 2}, {interval{ms(100), ms(310)}, 1}, {interval{ms(400), ms(1000)}, 2},
	}, s.pauses())
	assert.Equal(t, []interval{{ms(0), ms(10)}, {ms(10), ms(160)}, {ms(160), ms(310)}, {ms(310), ms(1000)}}, s.gaps())

	var o Operation
	s.count(&o, time.Now(), interval{ms(210), ms(250)})
	assert.Equal(t, 1, o.Statements)
	assert.Equal(t, ms(210), o.Pause.Duration)
	assert.Equal(t, ms(150), o.Gap.Duration)
}

func TestAChecksumOfTheServerIsComparedWithTheRowsRead(t *testing.T) {
	c := contents{balances: map[int]int64{0: balance, 1: balance}, number: 2, total: 2 * balance, count: 3, sum: 9, serverCount: 3, serverSum: 9}
	assert.Empty(t, c.judge(2))
	c.serverSum = 8
	assert.Equal(t, []string{"the server counts 3 rows of numbers with a checksum of 8, 3 with 9 were read"}, c.judge(2))
}
