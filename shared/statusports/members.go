package statusports

import (
	"context"
	"crypto/tls"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/httpclient"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/question"
)

const (
	// callTimeout bounds one request to a member.
	callTimeout = 2 * time.Second
	// FirstAnswerTimeout is for how long a group waits at most for the first answers of members
	// before it goes on without: the call, and a little.
	FirstAnswerTimeout = callTimeout + time.Second/2
	// AskAgain is how soon a member is asked again whose state is not final, or that did
	// not answer: as often as PD while something moves.
	AskAgain = time.Second
	// callsAtOnce bounds how many members of all groups are asked at the same time.
	callsAtOnce = 64
)

// Ask asks the member on a host for its state; empty if its version does not tell.
type Ask func(ctx context.Context, host string) (string, error)

// IsFinal reports whether a member that says a state is not to be asked again while its
// process lives.
type IsFinal func(state string) bool

// Members remembers what the running members of groups that are changing said of themselves.
// They are asked beside the reconciles, none of which waits for an answer: the group is
// woken up when there is one. A process whose state is final is not asked again.
type Members struct {
	ctx   context.Context
	ask   Ask
	final IsFinal
	now   func() time.Time
	queue *question.Queue

	mu   sync.Mutex
	seen map[types.NamespacedName]map[string]*process
	// first answers of processes.
	first *question.FirstAnswers
}

// process is one process of a member. Another one has another, so that an answer that
// comes late is no answer for it.
type process struct {
	member.StatusPortAnswer
	// tried is when it was asked last, known says that it has answered then, or has
	// not in time.
	tried time.Time
	known bool
	// busy says that it is being asked.
	busy bool
}

// New returns an empty memory. Members are asked until ctx ends.
func New(ctx context.Context, ask Ask, final IsFinal, now func() time.Time) *Members {
	return &Members{
		ctx: ctx, ask: ask, final: final, now: now, queue: question.NewQueue(callsAtOnce),
		seen: map[types.NamespacedName]map[string]*process{}, first: question.NewFirstAnswers(FirstAnswerTimeout),
	}
}

// Answers reports which groups have an answer.
func (s *Members) Answers() <-chan event.GenericEvent { return s.queue.Answers() }

// Forget forgets what was said for a group.
func (s *Members) Forget(g types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.seen, g)
	s.first.Forget(g)
}

// Observe returns what the members of Instances said for a group, by Instance, and has those
// asked whose state is not final. Pending says that some are being asked for
// the first time: nothing should be made of the rest before they have answered, or
// FirstAnswerTimeout is over. over is how a member is connected to over TLS, nil without.
func (s *Members) Observe(g types.NamespacedName, instances []*v1alpha1.Instance, over func(*v1alpha1.Instance) *tls.Config) (said map[string]member.StatusPortAnswer, pending bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, after, unknown := s.seen[g], map[string]*process{}, false
	said = map[string]member.StatusPortAnswer{}
	for _, i := range instances {
		since, ready := member.ReadySince(i)
		if !ready {
			continue
		}
		one := before[i.Name]
		if one == nil || !one.IsFrom(i) {
			one = &process{StatusPortAnswer: member.StatusPortAnswer{Pod: i.Status.PodUID, Since: since}}
		}
		after[i.Name] = one
		if !one.busy && (!one.known || !s.isSettled(one) && s.now().Sub(one.tried) >= AskAgain) {
			one.busy = true
			host, over := i.Status.PodIP, over(i)
			go s.queue.Run(s.ctx, g, func(ctx context.Context) bool { return s.hasNews(httpclient.WithTLS(ctx, over), host, one) })
		}
		if one.known {
			said[i.Name] = one.StatusPortAnswer
		}
		unknown = unknown || !one.known
	}
	s.seen[g] = after
	return said, s.first.MustWait(g, unknown, s.now())
}

// isSettled reports whether a process says nothing new if it is asked again: its state is
// final, or its version does not tell.
func (s *Members) isSettled(one *process) bool {
	return one.known && one.Err == nil && (one.State == "" || s.final(one.State))
}

// hasNews asks a member. That it answers the same as before is no news.
func (s *Members) hasNews(ctx context.Context, host string, one *process) bool {
	bounded, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	state, err := s.ask(bounded, host)
	if ctx.Err() != nil {
		return false // the operator ends, and the next one asks again
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		state = one.State
	}
	news := !one.known || state != one.State || fmt.Sprint(err) != fmt.Sprint(one.Err)
	one.State, one.Err, one.tried, one.known, one.busy = state, err, s.now(), true, false
	return news
}
