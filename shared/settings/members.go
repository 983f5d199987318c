package settings

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/group"
	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

const (
	// callTimeout bounds one request to a member.
	callTimeout = 3 * time.Second
	// maxAnswer is how much of a member's answer a person is told.
	maxAnswer = 160
)

// API reaches the status port of a member at a host.
type API interface {
	// Show returns the configuration that the member runs with, as JSON has it.
	Show(ctx context.Context, host string) (map[string]any, error)
	// Take has the member take items, by their names. It returns the member's answer
	// if it refuses, and an error if it could not be asked.
	Take(ctx context.Context, host string, items map[string]string) (refusal string, err error)
}

// Order is what a running member is to be given, by key.
type Order struct {
	Instance *v1alpha1.Instance
	Items    map[string]Value
}

// Members remembers what running members were last seen to run with. An operator
// that starts anew looks again; a member whose process does runs with its file.
type Members struct {
	table Table
	api   API
	now   func() time.Time

	mu   sync.Mutex
	seen map[types.NamespacedName]map[string]group.Running
}

// NewMembers returns an empty memory of the members that an API reaches.
func NewMembers(table Table, api API, now func() time.Time) *Members {
	return &Members{table: table, api: api, now: now, seen: map[types.NamespacedName]map[string]group.Running{}}
}

// Look returns what the running members of a group that may run with something
// else than their files say run with. It asks those that it does not know or whose
// process is another one by now, and forgets the others.
func (m *Members) Look(ctx context.Context, g v1alpha1.Group, instances []*v1alpha1.Instance) map[string]group.Running {
	before := m.of(g)
	out := map[string]group.Running{}
	var mu sync.Mutex
	var work []func() step.Outcome
	for _, i := range instances {
		since, ready := group.ReadySince(i)
		if !ready || i.DeletionTimestamp != nil || !group.Strays(i) {
			continue
		}
		old, known := before[i.Name]
		same := known && old.Pod == i.Status.PodUID && old.Since.Equal(&since)
		if same && (old.Err == nil || m.now().Sub(old.Tried.Time) < askAgain) {
			out[i.Name] = old
			continue
		}
		work = append(work, func() step.Outcome {
			seen := m.ask(ctx, i, since)
			if same {
				seen.Taken, seen.Refused = old.Taken, old.Refused
			}
			mu.Lock()
			defer mu.Unlock()
			out[i.Name] = seen
			return step.Done()
		})
	}
	step.Parallel(work...)
	m.remember(g, out)
	return out
}

// ask asks a member what it runs with.
func (m *Members) ask(ctx context.Context, i *v1alpha1.Instance, since metav1.Time) group.Running {
	out := group.Running{Pod: i.Status.PodUID, Since: since, Tried: metav1.NewTime(m.now())}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	document, err := m.api.Show(ctx, i.Status.PodIP)
	if err != nil {
		out.Err = fmt.Errorf("ask for its configuration: %w", err)
		return out
	}
	out.Values = map[string]string{}
	for _, item := range m.table.Items {
		if value, shown := lookup(document, item.Key); shown && !item.Blind {
			out.Values[item.Key] = item.Kind.shown(value)
		}
	}
	return out
}

// Give gives running members what they were ordered to be given, all that one
// lacks at once, and looks what has become of it: what it shows counts more than
// what it answers. Events tell a person.
func (m *Members) Give(ctx context.Context, env operator.Env, g v1alpha1.Group, orders []Order) step.Outcome {
	var work []func() step.Outcome
	for _, order := range orders {
		work = append(work, func() step.Outcome { return m.give(ctx, env, g, order) })
	}
	return step.Parallel(work...)
}

func (m *Members) give(ctx context.Context, env operator.Env, g v1alpha1.Group, order Order) step.Outcome {
	i := order.Instance
	since, ready := group.ReadySince(i)
	old, known := m.of(g)[i.Name]
	if !ready || !known || old.Pod != i.Status.PodUID || !old.Since.Equal(&since) {
		return step.Done() // it is another process by now
	}
	limited, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	refusal, err := m.api.Take(limited, i.Status.PodIP, m.texts(order.Items))
	if err != nil {
		old.Err, old.Tried = fmt.Errorf("give it its configuration: %w", err), metav1.NewTime(m.now())
		m.put(g, i.Name, old)
		return step.After(askAgain, v1alpha1.ReasonRequestFailed, fmt.Sprintf("Instance %s: %v", i.Name, old.Err))
	}
	now := m.ask(ctx, i, since)
	now.Taken, now.Refused = map[string]string{}, map[string]group.Refusal{}
	maps.Copy(now.Taken, old.Taken)
	if now.Err == nil {
		m.sort(&now, order.Items, refusal)
	}
	m.put(g, i.Name, now)
	if now.Err == nil && len(now.Refused) == 0 {
		env.Recorder.Eventf(g, i, corev1.EventTypeNormal, "ConfigGiven", "Configure", "Instance %s has taken %s while it runs", i.Name, list(order.Items))
	}
	// The plan was made from what the member ran with before.
	return step.Conflict(v1alpha1.ReasonConfigPending, "Instance "+i.Name+" has just been given "+list(order.Items))
}

// sort tells the items that a member has taken from those that it has not.
func (m *Members) sort(now *group.Running, items map[string]Value, refusal string) {
	for key, value := range items {
		item, _ := m.table.Item(key)
		has, shown := now.Values[key]
		answer := refusal
		switch {
		case shown && has == value.Plain:
			continue
		case (item.Blind || !shown) && refusal == "":
			now.Taken[key] = value.Plain
			continue
		case refusal == "":
			answer = "it said yes, and has " + has
		}
		now.Refused[key] = group.Refusal{Value: value.Plain, Answer: short(answer)}
	}
}

// texts returns items as the member is told them.
func (m *Members) texts(items map[string]Value) map[string]string {
	out := map[string]string{}
	for key, value := range items {
		item, _ := m.table.Item(key)
		name := item.Name
		if name == "" {
			name = key
		}
		out[name] = value.Text
	}
	return out
}

func list(items map[string]Value) string {
	return strings.Join(slices.Sorted(maps.Keys(items)), ", ")
}

// short returns the beginning of an answer on one line.
func short(answer string) string {
	answer = strings.Join(strings.Fields(answer), " ")
	if len(answer) > maxAnswer {
		answer = strings.ToValidUTF8(answer[:maxAnswer], "") + "..."
	}
	return answer
}

func (m *Members) of(g v1alpha1.Group) map[string]group.Running {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.seen[name(g)])
}

func (m *Members) remember(g v1alpha1.Group, seen map[string]group.Running) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(seen) == 0 {
		delete(m.seen, name(g))
		return
	}
	m.seen[name(g)] = maps.Clone(seen)
}

func (m *Members) put(g v1alpha1.Group, instance string, seen group.Running) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.seen[name(g)] == nil {
		m.seen[name(g)] = map[string]group.Running{}
	}
	m.seen[name(g)][instance] = seen
}

func name(g v1alpha1.Group) types.NamespacedName {
	return types.NamespacedName{Namespace: g.GetNamespace(), Name: g.GetName()}
}

// lookup returns the value below a document at a key with dots.
func lookup(document map[string]any, key string) (any, bool) {
	value, found, err := unstructured.NestedFieldNoCopy(document, strings.Split(key, ".")...)
	return value, err == nil && found && value != nil
}
