package faults

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Kind of a fault.
type Kind string

// The kinds of faults; the package comment says what they do.
const (
	None       Kind = "none"
	Crash      Kind = "crash"
	CrashAll   Kind = "crash-all"
	Drop       Kind = "drop"
	Stale      Kind = "stale"
	Conflict   Kind = "409"
	TooMany    Kind = "429"
	ServerDown Kind = "500"
	Timeout    Kind = "504"
	Reset      Kind = "reset"
	Lost       Kind = "lost"
	Kill       Kind = "kill"
	Delete     Kind = "delete"
)

// AnswerKinds are the faults that an operator gets as the answer to a write.
func AnswerKinds() []Kind { return []Kind{Conflict, TooMany, ServerDown, Timeout, Reset, Lost} }

// StrikesAtWrite says whether faults of the kind strike at a write.
func (k Kind) StrikesAtWrite() bool {
	return k == Crash || k == CrashAll || k.IsConcurrent() || slices.Contains(AnswerKinds(), k)
}

// IsConcurrent says whether a fault of the kind is something that a user does
// between a write and its reply, which itself is as ever.
func (k Kind) IsConcurrent() bool { return k == Kill || k == Delete }

// StrikesAtEvent says whether faults of the kind strike at an event.
func (k Kind) StrikesAtEvent() bool { return k == Drop || k == Stale }

// Fault is what goes wrong in a run, and where. The zero value is no fault.
type Fault struct {
	// Kind of the fault; empty is None.
	Kind Kind
	// Write that it strikes at, of the kinds AtWrite.
	Write Write
	// Event that it strikes at, of the kinds AtEvent.
	Event Event
	// For is how long a Stale watch stands still.
	For time.Duration
}

// String renders the fault in a way that Parse reads.
func (f Fault) String() string {
	switch {
	case f.Kind.StrikesAtWrite():
		return string(f.Kind) + ":" + f.Write.String()
	case f.Kind == Stale:
		return string(f.Kind) + ":" + f.Event.String() + "/" + f.For.String()
	case f.Kind.StrikesAtEvent():
		return string(f.Kind) + ":" + f.Event.String()
	default:
		return string(None)
	}
}

// Parse reads a fault.
func Parse(text string) (Fault, error) {
	name, point, _ := strings.Cut(text, ":")
	f := Fault{Kind: Kind(name)}
	var err error
	switch {
	case f.Kind == None && point == "":
	case f.Kind.StrikesAtWrite():
		f.Write, err = parseWrite(point)
	case f.Kind == Stale:
		at := max(0, strings.LastIndex(point, "/"))
		if f.For, err = time.ParseDuration(strings.TrimPrefix(point[at:], "/")); err == nil {
			f.Event, err = parseEvent(point[:at])
		}
	case f.Kind.StrikesAtEvent():
		f.Event, err = parseEvent(point)
	default:
		err = fmt.Errorf("there is no fault %q", name)
	}
	if err != nil {
		return Fault{}, fmt.Errorf("read fault %q: %w", text, err)
	}
	return f, nil
}
