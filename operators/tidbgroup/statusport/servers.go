package statusport

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"sync"
	"time"
)

// labelTimeout bounds one request to a server's status port.
const labelTimeout = 5 * time.Second

// Labelling is one server's labels.
type Labelling struct {
	// Instance of the server, namespace/name.
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
	labels map[string]Labelling
}

// New returns an empty memory that labels servers by set.
func New(set Set) *Servers {
	return &Servers{set: set, labels: map[string]Labelling{}}
}

// Known returns what every server was given, by Instance.
func (s *Servers) Known() map[string]Labelling {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.labels)
}

// Give sets the labels of a server and remembers it.
func (s *Servers) Give(ctx context.Context, l Labelling) error {
	ctx, cancel := context.WithTimeout(ctx, labelTimeout)
	defer cancel()
	if err := s.set(ctx, l.Host, l.Labels); err != nil {
		return fmt.Errorf("label TiDB server %s: %w", l.Instance, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.labels[l.Instance] = l
	return nil
}

// HTTP posts labels to a server's status port, as TiDB's HTTP API wants
// them since v6.3.
func HTTP(ctx context.Context, host string, labels map[string]string) error {
	body, err := json.Marshal(labels)
	if err != nil {
		return fmt.Errorf("encode labels: %w", err)
	}
	return post(ctx, host, "/labels", "application/json", string(body))
}
