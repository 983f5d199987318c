package settings

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// maxAnswer is how much of a member's answer is reported.
const maxAnswer = 160

// Order is what a running member is to be given, by key.
type Order struct {
	Instance *v1alpha1.Instance
	Items    map[string]Value
}

// Give has running members given what they were ordered to be given, all that one
// lacks at once, and then looks what has become of it: what it shows counts more
// than what it answers. Events tell a user. A member is given nothing whose
// Instance is not live the one that the order was made from, and the outcome says so.
func (m *Members) Give(ctx context.Context, live client.Reader, recorder events.EventRecorder, g v1alpha1.Group, orders []Order) step.Outcome {
	worst := step.Done()
	for _, order := range orders {
		if o := confirmUnchanged(ctx, live, order.Instance); o.Kind != step.KindDone {
			worst = step.Worst(worst, o)
			continue
		}
		one := m.reserveMember(g, order.Instance)
		if one == nil {
			continue
		}
		key, about := groupKey(g), g.DeepCopyObject() // the reconcile goes on with its own
		order.Instance = order.Instance.DeepCopy()
		secure := m.tlsContext(g)
		m.begin(func(ctx context.Context) {
			m.queue.Run(secure(ctx), key, func(ctx context.Context) bool {
				if m.appliesOrder(ctx, key, order, one) {
					recorder.Eventf(about, order.Instance, corev1.EventTypeNormal, "ConfigGiven", "Configure", "Instance %s has taken %s while it runs", order.Instance.Name, joinKeys(order.Items))
				}
				return true
			})
		})
	}
	return worst
}

// confirmUnchanged looks at an Instance in the API server before its member is given
// something: a cache that lags may show a mark that has been taken off since, and
// it would then be unknown what the member runs with.
func confirmUnchanged(ctx context.Context, live client.Reader, seen *v1alpha1.Instance) step.Outcome {
	var there v1alpha1.Instance
	err := live.Get(ctx, client.ObjectKeyFromObject(seen), &there)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return step.Fail(v1alpha1.ReasonRequestFailed, fmt.Errorf("get Instance %s: %w", seen.Name, err))
	case err != nil, there.UID != seen.UID, there.ResourceVersion != seen.ResourceVersion:
		return step.Conflict(v1alpha1.ReasonProgressing, "Instance "+seen.Name+" has changed meanwhile")
	}
	return step.Done()
}

// reserveMember notes that a member is being given something; nil if it is busy, or
// another process by now.
func (m *Members) reserveMember(g v1alpha1.Group, i *v1alpha1.Instance) *runningMember {
	m.mu.Lock()
	defer m.mu.Unlock()
	since, ready := member.ReadySince(i)
	one := m.seen[groupKey(g)][i.Name]
	if !ready || !one.isProcessOf(i, since) || !one.known || one.busy {
		return nil
	}
	one.busy, one.Giving = true, true
	return one
}

// appliesOrder gives a member what it was ordered to be given, and reports whether it has
// taken all of it.
func (m *Members) appliesOrder(ctx context.Context, g types.NamespacedName, order Order, one *runningMember) bool {
	if !m.isCurrent(g, order.Instance.Name, one) {
		return false // it would reach another process, for which it may be wrong by now
	}
	host := order.Instance.Status.PodIP
	refusal, err := m.sendItems(ctx, host, order.Items)
	var values map[string]string
	given := err == nil
	if given {
		values, err = m.fetchValues(ctx, host)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	one.busy, one.Giving = false, false
	one.Tried, one.Err = metav1.NewTime(m.now()), err
	one.Taken, one.Refused = copyMap(one.Taken), copyMap(one.Refused)
	if !given {
		// It may have taken them, and not have been able to say so. What it shows is
		// looked at when it cannot be on its way any more.
		one.Failed = err
		for key := range order.Items {
			delete(one.Taken, key)
			delete(one.Refused, key)
		}
		return false
	}
	one.Values, one.Failed = values, nil
	clear(one.Refused)
	m.classifyItems(one, order.Items, refusal)
	return err == nil && len(one.Refused) == 0
}

// isCurrent reports whether a process is still the one that runs.
func (m *Members) isCurrent(g types.NamespacedName, instance string, one *runningMember) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.seen[g][instance] == one
}

func (m *Members) sendItems(ctx context.Context, host string, items map[string]Value) (string, error) {
	texts := m.texts(items)
	if len(texts) == 0 {
		return "", nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	refusal, err := m.api.Take(ctx, host, texts)
	if err != nil {
		return "", fmt.Errorf("cannot be given its configuration: %w", err)
	}
	return refusal, nil
}

// classifyItems tells the items that a member has taken from those that it has not. Of
// several items of which one is refused, it may have taken any that it does not
// show.
func (m *Members) classifyItems(now *runningMember, items map[string]Value, refusal string) {
	given := len(m.texts(items))
	for key, value := range items {
		item, _ := m.table.Item(key)
		if item.ignoresValue(value) {
			now.Refused[key] = observation.Refusal{Value: value.Plain, Answer: "it would accept " + value.Text + " and ignore it"}
			continue
		}
		has, shown := now.Values[key]
		refused := observation.Refusal{Value: value.Plain, Answer: shortenAnswer(refusal)}
		switch {
		case shown && has == value.Plain:
			continue
		case (item.Blind || !shown) && refusal == "":
			now.Taken[key] = value.Plain
			continue
		case refusal == "":
			refused.Answer = shortenAnswer("it accepted the change, but has " + cmp.Or(has, "nothing"))
		case item.Blind && given > 1:
			refused.Uncertain = true
			delete(now.Taken, key)
		}
		now.Refused[key] = refused
	}
}

// texts returns items as they are sent to the member, without those that it would ignore.
func (m *Members) texts(items map[string]Value) map[string]string {
	out := map[string]string{}
	for key, value := range items {
		item, _ := m.table.Item(key)
		if item.ignoresValue(value) {
			continue
		}
		name := item.Name
		if name == "" {
			name = key
		}
		out[name] = value.Text
	}
	return out
}

func joinKeys(items map[string]Value) string {
	return strings.Join(slices.Sorted(maps.Keys(items)), ", ")
}

// shortenAnswer returns the beginning of an answer on one line.
func shortenAnswer(answer string) string {
	answer = strings.Join(strings.Fields(answer), " ")
	if len(answer) > maxAnswer {
		answer = strings.ToValidUTF8(answer[:maxAnswer], "") + "..."
	}
	return answer
}

// copyMap returns a copy of a map that has been handed out.
func copyMap[V any](m map[string]V) map[string]V {
	out := make(map[string]V, len(m))
	maps.Copy(out, m)
	return out
}
