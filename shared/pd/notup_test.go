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
		next.NoteNotUp(last, begin.Add(time.Duration(n)*time.Minute))
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

// After a restart of the operator, and after a poll that failed, PD's last heartbeat says since when a
// store is dead. PD's new leader does not know better at once: it is believed after two minutes.
func TestAStoreIsNotUpSinceItsLastHeartbeatOnceAnswersHaveSettled(t *testing.T) {
	begin := time.Unix(1_800_000_000, 0)
	last := View{}
	for n, c := range []struct {
		failed bool
		age    time.Duration // of the heartbeat
		since  time.Duration // before this answer
	}{
		{age: time.Hour}, {age: time.Hour, since: time.Minute}, {age: time.Hour, since: time.Hour}, {age: time.Hour, since: time.Hour + time.Minute},
		{failed: true}, {age: 2 * time.Hour}, {age: 2 * time.Hour, since: time.Minute}, {age: 2 * time.Hour, since: 2 * time.Hour},
		{failed: true}, {age: 0}, {age: 0, since: time.Minute}, {age: 2 * time.Minute, since: 2 * time.Minute}, {age: 2 * time.Minute, since: 3 * time.Minute},
	} {
		now := begin.Add(time.Duration(n) * time.Minute)
		next := View{Stores: []Store{{ID: "1", State: StateDisconnected, HeartbeatAge: c.age}}}
		if c.failed {
			next = View{Err: errors.New("no answer")}
		}
		next.NoteNotUp(last, now)
		if !c.failed {
			assert.Equal(t, c.since, now.Sub(next.Stores[0].NotUpSince), n)
			assert.Equal(t, last.Err == nil && n > 0 && last.Stores[0].NotUpSince.Equal(next.Stores[0].NotUpSince), next.Equal(last), "%d: who waits for the time is told", n)
		}
		last = next
	}
}
