package settings

import (
	"context"
	"crypto/tls"
	"fmt"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/httpclient"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/question"
)

const (
	// callTimeout bounds one request to a member.
	callTimeout = 3 * time.Second
	// FirstAnswerTimeout is for how long a group waits at most for the first answers of members
	// before it goes on without: the call, and a little.
	FirstAnswerTimeout = callTimeout + time.Second/2
	// callsAtOnce bounds how many members of all groups are asked or given something
	// at the same time: unreachable ones must not hold up the others, and each answer may
	// take some MiB.
	callsAtOnce = 16
)

// API reaches the status port of a member at a host.
type API interface {
	// Show returns the configuration that the member runs with, as JSON has it.
	Show(ctx context.Context, host string) (map[string]any, error)
	// Take has the member take items, by their names. It returns the member's answer
	// if it refuses, and an error if it could not be asked.
	Take(ctx context.Context, host string, items map[string]string) (refusal string, err error)
}

// Begin begins a piece of work beside the reconciles, with a context that ends
// with the operator.
type Begin func(work func(ctx context.Context))

// RunInBackground begins work until a context ends.
func RunInBackground(ctx context.Context) Begin {
	return func(work func(ctx context.Context)) { go work(ctx) }
}

// Members remembers what running members were last seen to run with. They are
// asked, and given something, beside the reconciles, none of which waits for an
// answer: the group is woken up when there is one. An operator that starts again
// looks again; a member whose process does runs with its file.
type Members struct {
	table Table
	api   API
	begin Begin
	now   func() time.Time
	queue *question.Queue
	tls   func(g v1alpha1.Group) *tls.Config

	mu   sync.Mutex
	seen map[types.NamespacedName]map[string]*runningMember
	// first answers of processes.
	first *question.FirstAnswers
}

// runningMember is one process of a member. Another one has another, so that an answer
// that comes late is no answer for it.
type runningMember struct {
	observation.RunningConfig
	// known says that it has answered, or has not in time.
	known bool
	// busy says that it is being asked or given something.
	busy bool
}

// NewMembers returns an empty memory of the members that an API reaches.
func NewMembers(table Table, api API, begin Begin, now func() time.Time) *Members {
	return &Members{
		table: table, api: api, begin: begin, now: now, queue: question.NewQueue(callsAtOnce),
		seen: map[types.NamespacedName]map[string]*runningMember{}, first: question.NewFirstAnswers(FirstAnswerTimeout),
	}
}

// WithTLS has the members of a group connected to over TLS if there is a configuration for
// it.
func (m *Members) WithTLS(config func(g v1alpha1.Group) *tls.Config) *Members {
	m.tls = config
	return m
}

// tlsContext returns a context in which the members of a group are connected to.
func (m *Members) tlsContext(g v1alpha1.Group) func(context.Context) context.Context {
	if m.tls == nil {
		return func(ctx context.Context) context.Context { return ctx }
	}
	config := m.tls(g)
	return func(ctx context.Context) context.Context { return httpclient.WithTLS(ctx, config) }
}

// Answers reports which groups have an answer.
func (m *Members) Answers() <-chan event.GenericEvent { return m.queue.Answers() }

// Forget forgets what is known of the members of a group.
func (m *Members) Forget(g types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.seen, g)
	m.first.Forget(g)
}

// Observe returns what the running members of a group that may run with something
// else than their files say run with, as far as that is known. It has those asked
// that it does not know or whose process is another one by now, and forgets those
// that run with their files. Pending says that some have just begun to be asked:
// nothing should be made of the rest before they have answered, or FirstAnswerTimeout is over.
func (m *Members) Observe(g v1alpha1.Group, instances []*v1alpha1.Instance) (running map[string]observation.RunningConfig, pending bool) {
	for _, ask := range m.planRequests(g, instances) {
		m.begin(ask)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	key, unknown := groupKey(g), false
	running = map[string]observation.RunningConfig{}
	for _, i := range instances {
		since, ready := member.ReadySince(i)
		one := m.seen[key][i.Name]
		switch {
		case !ready || !one.isProcessOf(i, since):
		case one.known:
			running[i.Name] = one.RunningConfig
		default:
			unknown = true
		}
	}
	return running, m.first.MustWait(key, unknown, m.now())
}

// planRequests notes which processes there are, and returns the work of asking those
// that are to be asked now.
func (m *Members) planRequests(g v1alpha1.Group, instances []*v1alpha1.Instance) []func(context.Context) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before, after := m.seen[groupKey(g)], map[string]*runningMember{}
	secure := m.tlsContext(g)
	var work []func(context.Context)
	for _, i := range instances {
		one := before[i.Name]
		since, ready := member.ReadySince(i)
		switch {
		case g.GetDeletionTimestamp() != nil || i.DeletionTimestamp != nil || ready && !member.MayRunOtherConfig(i):
			continue
		case !ready && (one == nil || one.Pod != i.Status.PodUID):
			continue
		case !ready:
			after[i.Name] = one // its Instance may only be ahead of its status
			continue
		case !one.isProcessOf(i, since):
			one = &runningMember{RunningConfig: observation.RunningConfig{Pod: i.Status.PodUID, Since: since}}
		}
		after[i.Name] = one
		if !one.busy && (!one.known || one.Err != nil && m.now().Sub(one.Tried.Time) >= askAgain) {
			one.busy = true
			key, host := groupKey(g), i.Status.PodIP
			work = append(work, func(ctx context.Context) {
				m.queue.Run(secure(ctx), key, func(ctx context.Context) bool { return m.hasNews(ctx, host, one) })
			})
		}
	}
	m.seen[groupKey(g)] = after
	if len(after) == 0 {
		delete(m.seen, groupKey(g))
	}
	return work
}

// isProcessOf reports whether it is the process that an Instance speaks of.
func (one *runningMember) isProcessOf(i *v1alpha1.Instance, since metav1.Time) bool {
	return one != nil && one.Pod == i.Status.PodUID && one.Since.Equal(&since)
}

// hasNews asks a member what it runs with. That it is still unreachable is no news.
func (m *Members) hasNews(ctx context.Context, host string, one *runningMember) bool {
	values, err := m.fetchValues(ctx, host)
	if ctx.Err() != nil {
		return false // the operator ends, and the next one asks again
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	news := !one.known || fmt.Sprint(err) != fmt.Sprint(one.Err)
	one.known, one.busy = true, false
	one.Values, one.Err, one.Tried = values, err, metav1.NewTime(m.now())
	return news
}

// fetchValues returns the values of the items that a member shows.
func (m *Members) fetchValues(ctx context.Context, host string) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	document, err := m.api.Show(ctx, host)
	if err != nil {
		return nil, fmt.Errorf("does not report its configuration: %w", err)
	}
	values := map[string]string{}
	for _, item := range m.table.Items {
		switch value, shown := lookupValue(document, item.Key); {
		case item.Blind:
		case shown:
			values[item.Key] = item.Kind.normalizeJSON(value)
		case m.table.HidesZero:
			values[item.Key] = item.Kind.zero()
		}
	}
	return values, nil
}

func groupKey(g v1alpha1.Group) types.NamespacedName {
	return types.NamespacedName{Namespace: g.GetNamespace(), Name: g.GetName()}
}

// lookupValue returns the value below a document at a key with dots.
func lookupValue(document map[string]any, key string) (any, bool) {
	value, found, err := unstructured.NestedFieldNoCopy(document, strings.Split(key, ".")...)
	return value, err == nil && found && value != nil
}
