package pd

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestAStoreIsNotUpSinceTheFirstOfTheAnswersThatSayIt(t *testing.T) {
	begin := time.Unix(1_800_000_000, 0)
	last := View{}
	for n, c := range []struct {
		state string // of store 1; none is no answer
		since int    // which answer; none if negative
	}{
		{StateUp, -1}, {StateDisconnected, 1}, {StateDown, 1}, {StateUp, -1}, {StateOffline, -1},
		{StateDisconnected, 5}, {"", -1}, {StateDisconnected, 7}, {StateDisconnected, 7},
	} {
		next := View{Stores: []Store{{ID: "1", State: c.state}, {ID: "2", State: StateUp}}}
		if c.state == "" {
			next = View{Err: errors.New("no answer")}
		}
		next.noteNotUp(last, begin.Add(time.Duration(n)*time.Minute))
		if last = next; c.state == "" {
			continue
		}
		want := time.Time{}
		if c.since >= 0 {
			want = begin.Add(time.Duration(c.since) * time.Minute)
		}
		assert.Equal(t, want, next.Stores[0].NotUpSince, n)
		assert.Zero(t, next.Stores[1].NotUpSince)
	}
}
