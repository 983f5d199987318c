package faults

import (
	"errors"
	"net/http"
	"slices"
	"sync"

	"k8s.io/client-go/transport"
)

// errDead is what is left to a program that has been killed.
var errDead = errors.New("the operator was killed")

// Injector does one fault to the operators of one run, and keeps the record of
// their writes and events.
type Injector struct {
	fault Fault
	crash func(operators []string)
	act   func()

	mu     sync.Mutex
	seen   map[any]int // how often each point's kin was met
	writes []Write
	events []Event
	lives  []*life
	struck bool
	over   chan struct{} // closed when what the fault does has been done
}

// life is one start of one operator. A dead one reaches no server any more, though
// its goroutines may still be ending.
type life struct {
	operator string
	dead     chan struct{} // closed by its death
}

// over returns an error once the life has ended.
func (l *life) over() error {
	select {
	case <-l.dead:
		return errDead
	default:
		return nil
	}
}

// New returns an injector of a fault. crash is called with the names of the
// operators that have just died of it: the caller has to cancel what is left of
// them and to start them again at once, but not before crash has returned. act does
// what a user does meanwhile; the operator waits for its reply until then.
func New(fault Fault, crash func(operators []string), act func()) *Injector {
	return &Injector{fault: fault, crash: crash, act: act, seen: map[any]int{}, over: make(chan struct{})}
}

// Wrap returns the wrapper of the transports of one start of an operator.
func (i *Injector) Wrap(operator string) transport.WrapperFunc {
	l := &life{operator: operator, dead: make(chan struct{})}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.lives = append(i.lives, l)
	return func(next http.RoundTripper) http.RoundTripper {
		return &wire{injector: i, life: l, next: next}
	}
}

// HasStruck says whether the run came by the fault's point.
func (i *Injector) HasStruck() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.struck
}

// Over is closed once the fault has struck and done all that it does: the stale
// watch goes on, the dead are known to be dead.
func (i *Injector) Over() <-chan struct{} { return i.over }

// Writes returns all writes so far, in the order of their arrival.
func (i *Injector) Writes() []Write {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Clone(i.writes)
}

// Events returns all events so far.
func (i *Injector) Events() []Event {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Clone(i.events)
}

// strikesWrite notes a write, and says whether the fault strikes it.
func (i *Injector) strikesWrite(w Write) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.seen[w]++
	w.Nth = i.seen[w]
	i.writes = append(i.writes, w)
	return i.strikes(i.fault.Kind.StrikesAtWrite() && i.fault.Write == w)
}

// strikesEvent notes an event, and says whether the fault strikes it.
func (i *Injector) strikesEvent(e Event) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.seen[e]++
	e.Nth = i.seen[e]
	i.events = append(i.events, e)
	return i.strikes(i.fault.Kind.StrikesAtEvent() && i.fault.Event == e)
}

// strikes notes that the fault strikes, which it does once.
func (i *Injector) strikes(here bool) bool {
	if !here || i.struck {
		return false
	}
	i.struck = true
	return true
}

// kill ends a life, or all with it.
func (i *Injector) kill(l *life) {
	i.mu.Lock()
	var dead []string
	i.lives = slices.DeleteFunc(i.lives, func(other *life) bool {
		if other != l && i.fault.Kind != CrashAll {
			return false
		}
		close(other.dead)
		if !slices.Contains(dead, other.operator) {
			dead = append(dead, other.operator)
		}
		return true
	})
	i.mu.Unlock()
	i.crash(dead)
}
