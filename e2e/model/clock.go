package model

import (
	"sync"
	"time"
)

// Clock is where the model takes the time from.
type Clock interface {
	Now() time.Time
}

// SystemClock is the wall clock.
type SystemClock struct{}

// Now returns the current time.
func (SystemClock) Now() time.Time { return time.Now() }

// ScaledClock runs Factor times as fast as the wall clock, from its creation on.
type ScaledClock struct {
	start  time.Time
	factor float64
}

// NewScaledClock returns a clock that starts now and runs factor times as fast
// as the wall clock.
func NewScaledClock(factor float64) *ScaledClock {
	return &ScaledClock{start: time.Now(), factor: factor}
}

// Now returns the scaled time.
func (c *ScaledClock) Now() time.Time {
	return c.start.Add(time.Duration(float64(time.Since(c.start)) * c.factor))
}

// ManualClock moves only when it is told to.
type ManualClock struct {
	mu  sync.Mutex
	now time.Time
}

// NewManualClock returns a clock that stands at start.
func NewManualClock(start time.Time) *ManualClock {
	return &ManualClock{now: start}
}

// Now returns the time that was last set.
func (c *ManualClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock forward by d.
func (c *ManualClock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}
