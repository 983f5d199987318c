package labelling

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// timeout bounds one request to a member.
const timeout = 5 * time.Second

// Set gives a running member its labels.
type Set func(ctx context.Context, host string, labels map[string]string) error

// Members remembers which labels the running members were given. A member
// forgets them when it restarts, and so does this memory when the operator
// does; giving them again is harmless.
type Members struct {
	set Set

	mu     sync.Mutex
	labels map[types.NamespacedName]map[string]Labelling
}

// New returns an empty memory that labels members by set.
func New(set Set) *Members {
	return &Members{set: set, labels: map[types.NamespacedName]map[string]Labelling{}}
}

// Labels returns what the members of a group's Instances were given, by Instance, and forgets
// its others.
func (m *Members) Labels(group types.NamespacedName, instances []*v1alpha1.Instance) map[string]Labelling {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := map[string]Labelling{}
	for _, i := range instances {
		if l, given := m.labels[group][i.Name]; given {
			known[i.Name] = l
		}
	}
	m.labels[group] = known
	return maps.Clone(known)
}

// Forget forgets all members of a group.
func (m *Members) Forget(group types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.labels, group)
}

// ListWork returns the work of giving labels, a piece for each member.
func (m *Members) ListWork(ctx context.Context, missing []Labelling) []func() step.Outcome {
	var work []func() step.Outcome
	for _, l := range missing {
		work = append(work, func() step.Outcome {
			if err := m.Give(ctx, l); err != nil {
				return step.Fail(v1alpha1.ReasonRequestFailed, err)
			}
			return step.Done()
		})
	}
	return work
}

// Give sets the labels of a member and remembers it.
func (m *Members) Give(ctx context.Context, l Labelling) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := m.set(ctx, l.Host, l.Labels); err != nil {
		return fmt.Errorf("label the member of Instance %s/%s: %w", l.Group.Namespace, l.Instance, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.labels[l.Group] == nil {
		m.labels[l.Group] = map[string]Labelling{}
	}
	m.labels[l.Group][l.Instance] = l
	return nil
}
