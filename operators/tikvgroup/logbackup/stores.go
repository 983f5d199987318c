package logbackup

import (
	"context"
	"crypto/tls"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/shared/httpclient"
)

// remembered is for how long it is known that a store was asked. No member is
// under way for so long.
const remembered = time.Hour

// Flush has the store on a host write out what its log backups hold, and returns
// how many log backups these are. What failed is in the error.
type Flush func(ctx context.Context, host string) (backups int, err error)

// Order is a flush that is wanted.
type Order struct {
	// Group that the store belongs to, for Events.
	Group client.Object
	// Instance and StoreID of the store.
	Instance, StoreID string
	// Pod of the store, and since when it is being prepared to stop: a store that
	// went on working has new data.
	Pod   types.UID
	Since time.Time
	// Host to reach the store at.
	Host string
	// TLS is how the store is connected to; nil without.
	TLS *tls.Config
	// Within is how long it may take.
	Within time.Duration
}

// asked is a store that was asked.
type asked struct {
	since time.Time
	ended bool
}

// Stores asks running stores, each beside everything else, and remembers it. When
// the operator restarts they are asked again, which is harmless.
type Stores struct {
	ctx   context.Context
	flush Flush
	tell  func(o Order, backups int, err error)

	mu   sync.Mutex
	pods map[types.UID]asked
}

// New returns an empty memory. Stores are asked by flush until ctx ends; tell is
// told how each one ended.
func New(ctx context.Context, flush Flush, tell func(o Order, backups int, err error)) *Stores {
	return &Stores{ctx: ctx, flush: flush, tell: tell, pods: map[types.UID]asked{}}
}

// Begin asks a store, unless it was asked already, and does not wait for it.
func (s *Stores) Begin(o Order) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if was, known := s.pods[o.Pod]; known && was.since.Equal(o.Since) {
		return
	}
	maps.DeleteFunc(s.pods, func(_ types.UID, a asked) bool { return o.Since.Sub(a.since) > remembered })
	s.pods[o.Pod] = asked{since: o.Since}
	go s.run(o)
}

func (s *Stores) run(o Order) {
	ctx, cancel := context.WithTimeout(s.ctx, o.Within)
	defer cancel()
	backups, err := s.flush(httpclient.WithTLS(ctx, o.TLS), o.Host)
	if s.ctx.Err() != nil {
		return // the operator ends, and the next one asks again
	}
	s.tell(o, backups, err)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pods[o.Pod].since.Equal(o.Since) {
		s.pods[o.Pod] = asked{since: o.Since, ended: true}
	}
}

// EndedPods returns the pods whose store has done what it can, or has had its time, and
// since when it was being prepared to stop then.
func (s *Stores) EndedPods() map[types.UID]time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[types.UID]time.Time{}
	for pod, a := range s.pods {
		if a.ended {
			out[pod] = a.since
		}
	}
	return out
}
