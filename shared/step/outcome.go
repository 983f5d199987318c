package step

import "time"

// Kind is one of the five ends.
type Kind string

const (
	// KindDone has nothing left to do.
	KindDone Kind = "Done"
	// KindWait waits for a watch to report something.
	KindWait Kind = "Wait"
	// KindAfter looks again after a while.
	KindAfter Kind = "After"
	// KindFail failed and is tried again with backoff.
	KindFail Kind = "Fail"
	// KindStall needs a user to act.
	KindStall Kind = "Stall"
)

// Outcome is how a step ended, and why.
type Outcome struct {
	// Kind of the end.
	Kind Kind
	// Reason is a condition reason; empty for Done.
	Reason string
	// Message is one line for a user, naming who must act.
	Message string
	// Source names what will wake a Wait up.
	Source string
	// After is when to look again: a Wait's deadline, a RetryAfter's delay; a
	// Stall's, if nothing will tell that a user has acted.
	After time.Duration
	// Err of a Fail.
	Err error
}

// Done returns the end of a step that has nothing left to do.
func Done() Outcome { return Outcome{Kind: KindDone} }

// Wait returns the end of a step that a watch on source will wake up, or the
// deadline if it does not.
func Wait(source string, deadline time.Duration, reason, message string) Outcome {
	return Outcome{Kind: KindWait, Source: source, After: deadline, Reason: reason, Message: message}
}

// RetryAfter returns the end of a step that looks again after d.
func RetryAfter(d time.Duration, reason, message string) Outcome {
	return Outcome{Kind: KindAfter, After: d, Reason: reason, Message: message}
}

// ConflictDelay is how soon what was planned from an object that has changed
// since is planned again: by then the cache shows the change.
const ConflictDelay = 50 * time.Millisecond

// Conflict returns the end of a step that met another version of an object than it
// was planned from.
func Conflict(reason, message string) Outcome { return RetryAfter(ConflictDelay, reason, message) }

// Fail returns the end of a step that failed.
func Fail(reason string, err error) Outcome {
	return Outcome{Kind: KindFail, Reason: reason, Message: err.Error(), Err: err}
}

// Stall returns the end of a step that only a user can help.
func Stall(reason, message string) Outcome {
	return Outcome{Kind: KindStall, Reason: reason, Message: message}
}

// severity orders outcomes by how pressing they are for a user.
func (o Outcome) severity() int {
	switch o.Kind {
	case KindStall:
		return 4
	case KindFail:
		return 3
	case KindWait:
		return 2
	case KindAfter:
		return 1
	case KindDone:
		return 0
	}
	return 0
}

// retry is when a failure is looked at again that a stall, which a user has
// to fix, would otherwise hide.
const retry = 10 * time.Second

// Worst returns the most pressing of outcomes, the first among equals; Done of
// none. It looks again as soon as any of them wanted to.
func Worst(outcomes ...Outcome) Outcome {
	worst, again := Done(), time.Duration(0)
	for _, o := range outcomes {
		if o.severity() > worst.severity() {
			worst = o
		}
		after := o.After
		if o.Kind == KindFail {
			after = retry
		}
		if after > 0 && (again == 0 || after < again) {
			again = after
		}
	}
	if worst.Kind != KindFail { // which has its own backoff
		worst.After = again
	}
	return worst
}
