package polling

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/tidb-groups/tidb-groups/shared/turns"

	"github.com/tidb-groups/tidb-groups/shared/pd"
)

// errStartedTwice is a mistake in the wiring of an operator.
var errStartedTwice = errors.New("the poller of PD has been started before")

// Poller asks each PD that is watched once per process, however many groups
// are interested, and keeps the latest View of it. Each PD has a goroutine of
// its own: one that does not answer never delays another.
//
// A Poller is a Runnable of a controller-runtime manager; it polls from Start
// on. All its methods return at once and may be used concurrently.
type Poller struct {
	*polls
	// asker identifies the caller of this Poller.
	asker string
}

// polls are what all askers of one process share.
type polls struct {
	dial   pd.Dialer
	timing turns.Timing
	turns  *turns.Turns

	mu          sync.Mutex
	ctx         context.Context // of Start; nil before
	running     sync.WaitGroup
	watches     map[types.NamespacedName]*watch
	subscribers []subscriber
}

var (
	_ manager.Runnable               = (*Poller)(nil)
	_ manager.LeaderElectionRunnable = (*Poller)(nil)
)

// Option changes a new Poller.
type Option func(*Poller)

// WithTiming polls at other times than turns.DefaultTiming.
func WithTiming(timing turns.Timing) Option {
	return func(p *Poller) { p.timing = timing }
}

// New returns a Poller that watches nothing yet.
func New(dial pd.Dialer, options ...Option) *Poller {
	p := &Poller{polls: &polls{dial: dial, timing: turns.DefaultTiming(), watches: map[types.NamespacedName]*watch{}}}
	for _, option := range options {
		option(p)
	}
	p.turns = turns.New(p.timing.PerSecond, p.timing.AtOnce)
	return p
}

// ForAsker returns the Poller of one of several operators in a process: what one asks for serves
// the others too, and a PD is polled until none of them asks for it. Only one of the Pollers
// is started.
func (p *Poller) ForAsker(asker string) *Poller { return &Poller{polls: p.polls, asker: asker} }

// NeedLeaderElection implements manager.LeaderElectionRunnable: only an operator that acts
// asks.
func (p *Poller) NeedLeaderElection() bool { return true }

// Start polls until the context ends and returns when the last poll has
// ended. It may be called once.
func (p *Poller) Start(ctx context.Context) error {
	p.mu.Lock()
	if p.ctx != nil {
		p.mu.Unlock()
		return errStartedTwice
	}
	p.ctx = ctx
	for _, w := range p.watches {
		p.run(w)
	}
	p.mu.Unlock()
	<-ctx.Done()
	p.running.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.watches {
		w.close()
	}
	return nil
}

// Watch asks for a PD to be polled, at once for the first time. Moving says
// that the caller waits for something to change in PD: it is then polled
// often. Call it in every reconcile; it is cheap, and each asker's latest call counts.
func (p *Poller) Watch(key types.NamespacedName, moving bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.watches[key]
	if w == nil {
		w = newWatch(key)
		w.askers[p.asker] = moving
		p.watches[key] = w
		p.run(w)
		return
	}
	if moving && !w.isMoving() {
		w.kick()
	}
	w.askers[p.asker] = moving
}

// Kick polls a PD soon, because something was just done to it or to its pods.
// Kicks that come close together make one poll. A PD that is not watched is
// not polled.
func (p *Poller) Kick(key types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w := p.watches[key]; w != nil {
		w.kick()
	}
}

// View returns what the latest poll of a PD found; false if it has not been
// polled yet or is not watched.
func (p *Poller) View(key types.NamespacedName) (pd.View, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.watches[key]
	if w == nil || !w.known {
		return pd.View{}, false
	}
	return w.view, true
}

// Ask polls a PD at this moment and returns what it says, which is the latest
// View from then on. It is for callers about to do what cannot be undone.
// It ends with the context, or with the deadline of a poll.
func (p *Poller) Ask(ctx context.Context, key types.NamespacedName) pd.View {
	p.mu.Lock()
	w := p.watches[key]
	p.mu.Unlock()
	if w == nil {
		w = newWatch(key)
		defer func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			w.close()
		}()
	}
	return p.poll(ctx, w, nil).view
}

// Client returns the client that a PD is polled with; of a PD that is not
// watched, a new one that the caller closes.
func (p *Poller) Client(key types.NamespacedName) (pd.Client, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w := p.watches[key]; w != nil {
		return w.open(p.dial)
	}
	return p.dial(key)
}

// run starts the goroutine of a watch if the Poller has been started and the
// watch has none. The caller holds the lock.
func (p *Poller) run(w *watch) {
	if p.ctx == nil || p.ctx.Err() != nil {
		return
	}
	ctx, stop := context.WithCancel(p.ctx)
	w.stop = stop
	p.running.Go(func() {
		defer stop()
		p.loop(ctx, w)
	})
}

// loop polls one PD until the context ends.
func (p *Poller) loop(ctx context.Context, w *watch) {
	pace := p.timing.Pace()
	timer := time.NewTimer(0)
	defer timer.Stop()
	begin := time.Time{}
	kicked := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.kicked:
			kicked = true
			timer.Reset(time.Until(begin.Add(pace.KickDelay())))
			continue
		case <-timer.C:
		}
		end, err := p.turns.Wait(ctx, kicked || p.isMoving(w), func() bool { return p.mayTakeLong(w) })
		if err != nil {
			return // the context has ended
		}
		w.clearKick()
		before := p.reusableView(w, kicked)
		kicked = false
		begin = time.Now()
		polled := p.poll(ctx, w, before)
		end()
		timer.Reset(pace.Next(polled.Poll, time.Since(begin)))
	}
}

// isMoving reports whether a reconcile waits for something to change in a PD.
func (p *Poller) isMoving(w *watch) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return w.isMoving()
}

// reusableView returns the View of which a poll need not ask for the settings again; nil if it has
// to: what is known of them is too old, or a reconcile waits for something, or has just done
// something.
func (p *Poller) reusableView(w *watch, kicked bool) *pd.View {
	p.mu.Lock()
	defer p.mu.Unlock()
	if kicked || !w.known || w.isMoving() || w.late > 0 || w.view.Err != nil || time.Since(w.set) >= p.timing.Settings {
		return nil
	}
	view := w.view
	return &view
}

// longPoll is how long a poll takes of which others are not to wait for the end.
const longPoll = 2 * time.Second

// mayTakeLong reports whether a poll of a PD may take long: the last one failed, or took long.
func (p *Poller) mayTakeLong(w *watch) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return w.late > 0 || w.slow || w.view.Err != nil
}

// poll is what came of one question to a PD, and the answer.
type poll struct {
	turns.Poll
	view pd.View
}

// poll asks one PD once, keeps the answer and tells the subscribers if it
// differs from the one before. Of two polls at the same time the answer to the
// later question counts. The first answers that do not come in time leave what
// is known as it is: a moment without a processor is no reason to wake everybody. If before
// is not nil, its settings are taken over.
func (p *Poller) poll(ctx context.Context, w *watch, before *pd.View) poll {
	p.mu.Lock()
	w.asked++
	question, begin := w.asked, time.Now()
	p.mu.Unlock()
	out := poll{view: p.ask(ctx, w, before)}
	p.askRemoved(ctx, w, out.view)
	out.Failed = out.view.Err != nil
	p.mu.Lock()
	if p.watches[w.key] != w || ctx.Err() != nil || question < w.answered {
		// Forgotten, stopping, or overtaken: a poll that was cut off says nothing.
		p.mu.Unlock()
		return out
	}
	w.answered, w.slow = question, time.Since(begin) > longPoll
	out.Moving = w.isMoving()
	if out.Late = w.toleratesLateAnswer(out.view, p.timing.Late); out.Late {
		p.mu.Unlock()
		return out
	}
	if before != nil {
		// The settings may have been asked for meanwhile.
		out.view, _ = out.view.WithSettings(w.view)
	}
	out.view.NoteNotUp(w.view, begin)
	p.checkOutage(w, &out.view)
	out.Changed = !w.known || !w.view.Equal(out.view)
	w.view, w.known = out.view, true
	if before == nil {
		w.set = begin
	}
	p.mu.Unlock()
	if out.Changed {
		p.notifySubscribers(w.key)
	}
	return out
}

func (p *Poller) ask(ctx context.Context, w *watch, before *pd.View) pd.View {
	p.mu.Lock()
	client, err := w.open(p.dial)
	p.mu.Unlock()
	if err != nil {
		return pd.View{Err: err}
	}
	ctx, cancel := context.WithTimeout(ctx, p.timing.Deadline)
	defer cancel()
	view, err := fetchView(ctx, client, before)
	if errors.Is(err, pd.ErrNoLeader) {
		select {
		case <-time.After(p.timing.Handover):
			view, err = client.View(ctx)
		case <-ctx.Done():
		}
	}
	if err != nil {
		return pd.View{Err: err}
	}
	return view
}

// fetchView asks for everything, or for what changes by itself if before is not nil.
func fetchView(ctx context.Context, client pd.Client, before *pd.View) (pd.View, error) {
	if before == nil {
		return client.View(ctx)
	}
	return client.Refresh(ctx, *before)
}
