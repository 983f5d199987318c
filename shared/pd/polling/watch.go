package polling

import (
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/shared/pd"
)

// watch is the interest in one PD. The Poller's lock guards it.
type watch struct {
	key types.NamespacedName
	// askers are those that ask for the PD, and whether each waits for something to change.
	askers map[string]bool
	kicked chan struct{} // holds at most one kick
	stop   func()
	client pd.Client // nil until it is needed
	view   pd.View
	known  bool      // view has been polled
	set    time.Time // when the settings in view were asked for
	outage outage

	asked    int  // polls begun
	answered int  // the last poll that was answered, or was late
	late     int  // polls in a row that were not answered in time
	slow     bool // the last poll took long
}

func newWatch(key types.NamespacedName) *watch {
	return &watch{key: key, askers: map[string]bool{}, kicked: make(chan struct{}, 1), stop: func() {}}
}

// isMoving reports whether anybody waits for something to change.
func (w *watch) isMoving() bool {
	for _, moving := range w.askers {
		if moving {
			return true
		}
	}
	return false
}

// kick never blocks: a second kick before the first is heard adds nothing.
func (w *watch) kick() {
	select {
	case w.kicked <- struct{}{}:
	default:
	}
}

// clearKick takes a kick that came while a poll waited: that poll begins after it.
func (w *watch) clearKick() {
	select {
	case <-w.kicked:
	default:
	}
}

// toleratesLateAnswer counts an answer that did not come in time, and reports whether what
// was known before goes on to count.
func (w *watch) toleratesLateAnswer(view pd.View, most int) bool {
	if !errors.Is(view.Err, context.DeadlineExceeded) {
		w.late = 0
		return false
	}
	w.late++
	return w.known && w.view.Err == nil && w.late <= most
}

// open returns the client, which is dialed when it is first needed and again
// after a failure to dial.
func (w *watch) open(dial pd.Dialer) (pd.Client, error) {
	if w.client != nil {
		return w.client, nil
	}
	client, err := dial(w.key)
	if err != nil {
		return nil, err
	}
	w.client = client
	return client, nil
}

func (w *watch) close() {
	if w.client != nil {
		w.client.Close()
		w.client = nil
	}
}

// IsAskedFor reports whether the asker has a PD polled.
func (p *Poller) IsAskedFor(key types.NamespacedName) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.watches[key]
	if w == nil {
		return false
	}
	_, asks := w.askers[p.asker]
	return asks
}

// Keep says that the asker no longer asks for those PDs of a namespace that are not among
// the names: no group names them any more. What is not asked for is not polled, and what is
// known of it is dropped.
func (p *Poller) Keep(namespace string, names []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, w := range p.watches {
		if key.Namespace != namespace || slices.Contains(names, key.Name) {
			continue
		}
		if delete(w.askers, p.asker); len(w.askers) > 0 {
			continue
		}
		delete(p.watches, key)
		w.stop()
		w.close()
	}
}
