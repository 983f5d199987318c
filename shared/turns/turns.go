package turns

import (
	"context"
	"fmt"

	"k8s.io/client-go/util/flowcontrol"
)

// Turns limits how many polls begin in a second, and grants turns in the order of the requests. Its methods may be used
// concurrently.
type Turns struct {
	// moving and steady bound how many begin in a second.
	moving, steady flowcontrol.RateLimiter
	// failing and answering have room for those that go on.
	failing, answering chan struct{}
}

// New returns Turns of which perSecond begin in a second for what moves, and as many for the
// rest; atOnce go on at the same time of what failed last time, and as many of the rest.
func New(perSecond, atOnce int) *Turns {
	limiter := func() flowcontrol.RateLimiter {
		return flowcontrol.NewTokenBucketRateLimiter(float32(perSecond), perSecond)
	}
	return &Turns{
		moving: limiter(), steady: limiter(),
		failing: make(chan struct{}, atOnce), answering: make(chan struct{}, atOnce),
	}
}

// Wait returns at the begin of a turn, and what to call at its end; an error when the context
// has ended. What fails may keep its place until a deadline, and so has places of its own.
// Failed is asked when a place is chosen.
func (t *Turns) Wait(ctx context.Context, moving bool, failed func() bool) (end func(), err error) {
	limiter := t.steady
	if moving {
		limiter = t.moving
	}
	if err := limiter.Wait(ctx); err != nil {
		return nil, fmt.Errorf("wait for a turn: %w", err)
	}
	places := t.answering
	if failed() {
		places = t.failing
	}
	select {
	case places <- struct{}{}:
		return func() { <-places }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for a place: %w", ctx.Err())
	}
}
