package turns

import "time"

// Timing says how often a PD is polled.
type Timing struct {
	// Deadline of one poll, in which PD waits for members that do not answer: three seconds for
	// each. A PD that says nothing is given up sooner, by the client.
	Deadline time.Duration
	// Spacing is the least time between the beginnings of two polls.
	Spacing time.Duration
	// Steady is the time between polls while nothing is expected to change.
	Steady time.Duration
	// Settings is for how long what is set in PD is not asked for again while nothing is
	// expected to change.
	Settings time.Duration
	// Fast is the time between polls while something moves, at first.
	Fast time.Duration
	// Slow is the time between polls while something moves but does not
	// change, and the first after a failure while nothing moves.
	Slow time.Duration
	// Breaker is the number of failures in a row after which kicks make no
	// more than one poll in Slow.
	Breaker int
	// Ease is how many times as long as the last poll took there is none: a PD,
	// or a machine, that is short of time is asked less. No wait is longer than
	// Steady because of it.
	Ease int
	// Late is how many polls in a row may miss the Deadline, after one that was
	// answered, before PD counts as unreachable. They are repeated after Fast.
	Late int
	// PerSecond is how many polls of PDs of which something moves a process begins in a second,
	// and how many of all others, each in the order in which they are due: of hundreds each is
	// asked less often. A caller about to act (Ask) does not wait.
	PerSecond int
	// AtOnce is how many polls of PDs that failed last time, or took long, go on at the same
	// time in a process, and how many of all others. Its Deadline begins when a poll does. One that is about
	// to act (Ask) does not wait.
	AtOnce int
	// Handover is after how long a poll that met no leader asks once more. A leader
	// that hands over leaves the members without one for some milliseconds.
	Handover time.Duration
}

// DefaultTiming polls every 10 s when steady, every fifth time with the settings, and, while
// something moves, from every 200 ms to every second, as long as no more than 500 are steady
// and 50 move in one process. A PD that does not answer is named within 4.2 s, so that a
// condition can report it within 5 s.
func DefaultTiming() Timing {
	return Timing{
		Deadline: 11 * time.Second, // of seven members three may be dead
		Spacing:  100 * time.Millisecond,
		Steady:   10 * time.Second,
		Settings: 45 * time.Second,
		Fast:     200 * time.Millisecond,
		Slow:     time.Second,
		Breaker:  5,
		Ease:     1,
		Late:     1,
		Handover: 300 * time.Millisecond,

		PerSecond: 50, // a poll costs an operator some 2 ms of processor time
		AtOnce:    16, // and takes some 10 ms where processors have time
	}
}

// Poll is what came of one question to a PD.
type Poll struct {
	// Moving says that a reconcile waits for something to change, and Changed that the answer
	// differs from what was known.
	Moving, Changed bool
	// Late says that there was no answer in time, and that this is not believed yet, and Failed
	// that there was none.
	Late, Failed bool
}

// Pace is the course of the polls of one PD.
type Pace struct {
	Timing
	moved    time.Duration // the last wait while something moved; 0 if none
	failures int           // in a row
	apart    time.Duration // least time from the beginning of the last poll to the next
}

// Pace returns the course of polls that have not begun yet.
func (t Timing) Pace() *Pace { return &Pace{Timing: t} }

// KickDelay returns the least time from the beginning of one poll to that of one
// that was asked for, and polls fast from there on.
func (p *Pace) KickDelay() time.Duration {
	p.moved = 0
	if p.failures >= p.Breaker {
		return max(p.Slow, p.apart)
	}
	return max(p.Spacing, p.apart)
}

// Next returns how long to wait after a poll.
func (p *Pace) Next(polled Poll, took time.Duration) time.Duration {
	if polled.Late {
		// The next poll, soon, shows whether it is unreachable.
		p.apart = took
		return p.Fast
	}
	ease := min(time.Duration(p.Ease)*took, p.Steady)
	p.apart = took + ease
	if polled.Failed {
		p.failures++
	} else {
		p.failures = 0
	}
	return max(p.plannedDelay(polled), ease)
}

// plannedDelay returns how long to wait after a poll that did not take long.
func (p *Pace) plannedDelay(polled Poll) time.Duration {
	switch {
	case polled.Moving && (polled.Changed || p.moved == 0):
		p.moved = p.Fast
		return p.moved
	case polled.Moving:
		p.moved = min(p.moved*3/2, p.Slow)
		return p.moved
	case polled.Failed:
		// 1 s, 2 s, 4 s, … : a failure is often over soon.
		p.moved = 0
		return min(p.Slow<<min(p.failures-1, 16), p.Steady)
	}
	p.moved = 0
	return p.Steady
}
