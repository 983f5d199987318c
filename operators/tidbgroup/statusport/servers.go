package statusport

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// labelTimeout bounds one request to a server's status port.
const labelTimeout = 5 * time.Second

// Labelling is one server's labels.
type Labelling struct {
	// Group of the server, and Instance, the name of its own.
	Group    types.NamespacedName
	Instance string
	// Pod of the server by UID, and since when it is ready: a server that
	// restarts in either sense has forgotten its labels.
	Pod, Since string
	// Host to reach the server at.
	Host string
	// Labels to give.
	Labels map[string]string
}

// Set gives a running server its labels.
type Set func(ctx context.Context, host string, labels map[string]string) error

// Servers remembers which labels the running servers were given. A server
// forgets them when it restarts, and so does this memory when the operator
// does; giving them again is harmless.
type Servers struct {
	set Set

	mu     sync.Mutex
	labels map[types.NamespacedName]map[string]Labelling
}

// New returns an empty memory that labels servers by set.
func New(set Set) *Servers {
	return &Servers{set: set, labels: map[types.NamespacedName]map[string]Labelling{}}
}

// Labels returns what the servers of a group's Instances were given, by Instance, and forgets
// its others.
func (s *Servers) Labels(group types.NamespacedName, instances []*v1alpha1.Instance) map[string]Labelling {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := map[string]Labelling{}
	for _, i := range instances {
		if l, given := s.labels[group][i.Name]; given {
			known[i.Name] = l
		}
	}
	s.labels[group] = known
	return maps.Clone(known)
}

// Forget forgets all servers of a group.
func (s *Servers) Forget(group types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.labels, group)
}

// Give sets the labels of a server and remembers it.
func (s *Servers) Give(ctx context.Context, l Labelling) error {
	ctx, cancel := context.WithTimeout(ctx, labelTimeout)
	defer cancel()
	if err := s.set(ctx, l.Host, l.Labels); err != nil {
		return fmt.Errorf("label TiDB server %s/%s: %w", l.Group.Namespace, l.Instance, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.labels[l.Group] == nil {
		s.labels[l.Group] = map[string]Labelling{}
	}
	s.labels[l.Group][l.Instance] = l
	return nil
}

// PostLabels posts labels to a server's status port, as TiDB's HTTP API wants
// them since v6.3.
func PostLabels(ctx context.Context, host string, labels map[string]string) error {
	body, err := json.Marshal(labels)
	if err != nil {
		return fmt.Errorf("encode labels: %w", err)
	}
	return postRequest(ctx, host, "/labels", "application/json", string(body))
}
