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
	// Patience after which what still has a lease is left alone: it belongs to a
	// server that runs.
	Patience time.Duration
	// Call bounds one call of PD.
	Call time.Duration
}

// DefaultTiming outlasts the lease of a TiDB server, 45 seconds, by two looks.
func DefaultTiming() Timing {
	return Timing{Between: 15 * time.Second, Patience: 2 * time.Minute, Call: 3 * time.Second}
}

// PD is the part of pd.Client that is needed.
type PD interface {
	Servers(ctx context.Context) ([]pd.Server, error)
	ForgetServer(ctx context.Context, s pd.Server) (bool, error)
	Close()
}

// Sweeper removes the registrations of servers that have left, beside the
// reconciles, when the members of a group have changed. What a killed operator
// forgets it does when it sees the group again.
type Sweeper struct {
	dial   func(pdGroup types.NamespacedName) (PD, error)
	timing Timing

	mu      sync.Mutex
	groups  map[types.NamespacedName]Group // as last asked for
	running map[types.NamespacedName]bool
}

// NewSweeper returns a Sweeper that has swept nothing yet.
func NewSweeper(dial func(pdGroup types.NamespacedName) (PD, error), timing Timing) *Sweeper {
	return &Sweeper{dial: dial, timing: timing, groups: map[types.NamespacedName]Group{}, running: map[types.NamespacedName]bool{}}
}

// Sweep sweeps until ctx ends, unless the group was swept with the same members
// before. It returns at once.
func (s *Sweeper) Sweep(ctx context.Context, g Group) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last, swept := s.groups[g.Name]; swept && last.hasSameMembers(g) {
		return
	}
	s.groups[g.Name] = g
	if !s.running[g.Name] {
		s.running[g.Name] = true
		go s.run(ctx, g)
	}
}

// Forget drops what is known of a group that is gone.
func (s *Sweeper) Forget(group types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.groups, group)
}

// run sweeps a group until its members are those that it was swept for.
func (s *Sweeper) run(ctx context.Context, g Group) {
	for {
		answered := s.sweep(ctx, g)
		s.mu.Lock()
		next, wanted := s.groups[g.Name]
		if ctx.Err() != nil || !wanted || next.hasSameMembers(g) {
			delete(s.running, g.Name)
			if !answered {
				// The group is reconciled when its PD is Ready again, and asks again.
				delete(s.groups, g.Name)
			}
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		g = next
	}
}

// sweep looks at the registrations of a group until none is left of a server that
// has gone, or its patience has ended. It reports whether PD answered in the end.
func (s *Sweeper) sweep(ctx context.Context, g Group) bool {
	var left []pd.Server
	var last error
	err := wait.PollUntilContextTimeout(ctx, s.timing.Between, s.timing.Patience, true, func(ctx context.Context) (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, s.timing.Call)
		defer cancel()
		left, last = s.removeDead(ctx, g, left)
		return last == nil && len(left) == 0, nil
	})
	if err == nil || ctx.Err() != nil {
		return true
	}
	log.FromContext(ctx).Info("registrations of TiDB servers that have left stay in PD's etcd", "group", g.Name, "servers", listAddresses(left), "reason", errors.Join(err, last).Error())
	return last == nil
}

// removeDead removes what was seen dead before and is so still, and returns what is left
// of servers that the group does not have.
func (s *Sweeper) removeDead(ctx context.Context, g Group, before []pd.Server) ([]pd.Server, error) {
	client, err := s.dial(g.PD)
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
