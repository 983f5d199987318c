package registry

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tidb-groups/tidb-groups/shared/pd"
)

// Timing says how often PD is asked. Nothing shows that a lease ends.
type Timing struct {
	// Between two looks. A registration is removed when it was seen without a
	// lease at two of them, and has not been renewed meanwhile.
	Between time.Duration
	// Timeout after which what still has a lease is left alone: it belongs to a
	// server that runs.
	Timeout time.Duration
	// Call bounds one call of PD.
	Call time.Duration
}

// DefaultTiming outlasts the lease of a TiDB server, 45 seconds, by two looks.
func DefaultTiming() Timing {
	return Timing{Between: 15 * time.Second, Timeout: 2 * time.Minute, Call: 3 * time.Second}
}

// PD is the part of pd.Client that is needed.
type PD interface {
	Servers(ctx context.Context) ([]pd.Server, error)
	ForgetServer(ctx context.Context, s pd.Server) (bool, error)
	Close()
}

// Collector removes the registrations of servers that have left, beside the
// reconciles, when the members of a group have changed. What a killed operator
// forgets it does when it sees the group again.
type Collector struct {
	dial   func(pdGroup types.NamespacedName) (PD, error)
	timing Timing

	mu      sync.Mutex
	groups  map[types.NamespacedName]Group // as last asked for
	running map[types.NamespacedName]bool
}

// NewCollector returns a Collector that has seen no group yet.
func NewCollector(dial func(pdGroup types.NamespacedName) (PD, error), timing Timing) *Collector {
	return &Collector{dial: dial, timing: timing, groups: map[types.NamespacedName]Group{}, running: map[types.NamespacedName]bool{}}
}

// Collect removes dead registrations beside the caller until ctx ends, unless it did so for
// the group with the same members before. It returns at once.
func (c *Collector) Collect(ctx context.Context, g Group) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if last, collected := c.groups[g.Name]; collected && last.hasSameMembers(g) {
		return
	}
	c.groups[g.Name] = g
	if !c.running[g.Name] {
		c.running[g.Name] = true
		go c.run(ctx, g)
	}
}

// Forget drops what is known of a group that is gone.
func (c *Collector) Forget(group types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.groups, group)
}

// run collects for a group until its members are those that it has collected for.
func (c *Collector) run(ctx context.Context, g Group) {
	for {
		err := c.collectStale(ctx, g)
		c.mu.Lock()
		next, wanted := c.groups[g.Name]
		if ctx.Err() != nil || !wanted || next.hasSameMembers(g) {
			delete(c.running, g.Name)
			if err != nil {
				// The group is reconciled when its PD is Ready again, and asks again.
				delete(c.groups, g.Name)
			}
			c.mu.Unlock()
			return
		}
		c.mu.Unlock()
		g = next
	}
}

// collectStale looks at the registrations of a group until none is left of a server that
// has gone, or the timeout has passed. It returns why PD did not answer in the end.
func (c *Collector) collectStale(ctx context.Context, g Group) error {
	var left []pd.Server
	var last error
	err := wait.PollUntilContextTimeout(ctx, c.timing.Between, c.timing.Timeout, true, func(ctx context.Context) (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, c.timing.Call)
		defer cancel()
		left, last = c.removeDead(ctx, g, left)
		return last == nil && len(left) == 0, nil
	})
	if err == nil || ctx.Err() != nil {
		return nil
	}
	log.FromContext(ctx).Info("registrations of TiDB servers that have left stay in PD's etcd", "group", g.Name, "servers", listAddresses(left), "reason", errors.Join(err, last).Error())
	return last
}

// removeDead removes what was seen dead before and is so still, and returns what is left
// of servers that the group does not have.
func (c *Collector) removeDead(ctx context.Context, g Group, before []pd.Server) ([]pd.Server, error) {
	client, err := c.dial(g.PD)
	if err != nil {
		return before, err
	}
	defer client.Close()
	servers, err := client.Servers(ctx)
	if err != nil {
		return before, err
	}
	var left []pd.Server
	for _, server := range g.FindStale(servers) {
		gone := false
		if IsDead(server, before) {
			if gone, err = client.ForgetServer(ctx, server); err != nil {
				return before, err
			}
		}
		if !gone {
			left = append(left, server)
		}
	}
	return left, nil
}

func listAddresses(servers []pd.Server) []string {
	out := make([]string, 0, len(servers))
	for _, s := range servers {
		out = append(out, s.Address)
	}
	return out
}
