package campaign

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/tidb-groups/tidb-groups/e2e/faults"
	"github.com/tidb-groups/tidb-groups/e2e/rig"
	"github.com/tidb-groups/tidb-groups/e2e/scenario"
	"github.com/tidb-groups/tidb-groups/shared/testkit/controlplane"
)

// actTime is how long the other actor of a fault may take.
const actTime = 30 * time.Second

// stage is a rig whose operators have a fault coming to them, and are started
// again when they die of it.
type stage struct {
	*rig.Rig
	fault    faults.Fault
	injector *faults.Injector
	ctx      context.Context
	// act is what the other actor of a fault does when it strikes.
	act func(context.Context) error

	mu      sync.Mutex // held while operators start and stop
	wanted  []string   // the operators that the scenario wants to run
	failed  error      // of a start after a crash, or of act
	pending sync.WaitGroup
}

var _ scenario.World = (*stage)(nil)

// openStage makes a stage for a scenario.
func openStage(ctx context.Context, plane *controlplane.ControlPlane, s scenario.Scenario, fault faults.Fault) (*stage, error) {
	out := &stage{ctx: ctx, fault: fault}
	out.injector = faults.New(fault, out.crashed, out.meanwhile)
	var err error
	out.Rig, err = rig.Open(ctx, plane, rig.Options{
		ReasonDeadline: reasonDeadline, Relist: relist,
		Reach: func(operator string, config *rest.Config) { config.Wrap(out.injector.Wrap(operator)) },
	}.For(s))
	return out, err
}

// StartOperators implements scenario.World.
func (s *stage) StartOperators(ctx context.Context, names ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		if !slices.Contains(s.wanted, name) {
			s.wanted = append(s.wanted, name)
		}
		err := s.Rig.StartOperators(ctx, name)
		if err != nil && !s.injector.HasStruck() {
			return err
		}
		// One that was killed while it started is started again by restart,
		// which waits for us.
	}
	return nil
}

// StopOperators implements scenario.World.
func (s *stage) StopOperators(ctx context.Context, names ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wanted = slices.DeleteFunc(s.wanted, func(name string) bool { return slices.Contains(names, name) })
	return s.Rig.StopOperators(ctx, names...)
}

// crashed has operators that were killed started again at once.
func (s *stage) crashed(names []string) {
	s.Rig.Sever(names...)
	s.pending.Go(func() {
		if err := s.restart(names); err != nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.failed = errors.Join(s.failed, fmt.Errorf("start %v again: %w", names, err))
		}
	})
}

// meanwhile lets the other actor do what the fault is.
func (s *stage) meanwhile() {
	ctx, cancel := context.WithTimeout(s.ctx, actTime)
	defer cancel()
	if err := s.act(ctx); err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.failed = errors.Join(s.failed, err)
	}
}

// restart starts operators again, unless the scenario has stopped them in the
// meantime.
func (s *stage) restart(names []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.Rig.StopOperators(s.ctx, names...); err != nil {
		return err
	}
	for _, name := range names {
		if slices.Contains(s.wanted, name) {
			if err := s.Rig.StartOperators(s.ctx, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// over waits until the fault, if it has struck, has done what it does, and the
// operators that died of it run again.
func (s *stage) over(ctx context.Context) error {
	if s.injector.HasStruck() {
		select {
		case <-s.injector.Over():
		case <-ctx.Done():
			return fmt.Errorf("wait for the end of the fault: %w", context.Cause(ctx))
		}
	}
	s.pending.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}
