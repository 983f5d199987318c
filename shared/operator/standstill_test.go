package operator

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// A process that was stopped for forty seconds ran on for ten more beside the replica that led by then
// (measured with SIGSTOP and SIGCONT).
func TestAProcessThatStoodStillIsToldAtTheNextTick(t *testing.T) {
	begin := time.Unix(1_800_000_000, 0)
	for name, c := range map[string]struct {
		passes []time.Duration
		stood  time.Duration
	}{
		"it runs":                          {[]time.Duration{time.Second, time.Second, 3 * time.Second}, 0},
		"it was late, and renews in time":  {[]time.Duration{time.Second, 9 * time.Second, 9 * time.Second}, 0},
		"it stood still":                   {[]time.Duration{time.Second, 40 * time.Second, time.Second}, 40 * time.Second},
		"as long as the election gives it": {[]time.Duration{standstill}, standstill},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, end := context.WithCancel(t.Context())
			ticks, now := make(chan time.Time), begin
			times := make(chan time.Time, 2*len(c.passes)+1)
			for _, passes := range c.passes {
				times <- now
				now = now.Add(passes)
				times <- now
			}
			times <- now
			told := make(chan time.Duration)
			go func() { told <- awaitStandstill(ctx, ticks, func() time.Time { return <-times }) }()
			for range c.passes {
				select {
				case ticks <- begin:
				case stood := <-told:
					assert.Equal(t, c.stood, stood)
					end()
					return
				}
			}
			if c.stood == 0 {
				end()
			}
			assert.Equal(t, c.stood, <-told)
			end()
		})
	}
}
