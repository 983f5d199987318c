package rig

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/pprof"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/all/suite"
	"github.com/tidb-groups/tidb-groups/shared/credentials"
	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/pdclient"
	"github.com/tidb-groups/tidb-groups/shared/shard"
)

// Definitions returns all operators.
func Definitions() []operator.Definition { return suite.Program().Operators }

// Operators returns the names of all operators.
func Operators() []string {
	var out []string
	for _, d := range Definitions() {
		out = append(out, d.Name)
	}
	return out
}

// findDefinition returns one operator by name.
func findDefinition(name string) (operator.Definition, error) {
	for _, d := range Definitions() {
		if d.Name == name {
			return d, nil
		}
	}
	return operator.Definition{}, fmt.Errorf("no operator is called %q", name)
}

// Process is how an operator runs.
type Process struct {
	// Config is its access to the API server.
	Config *rest.Config
	// Flags are its command line.
	Flags operator.Flags
}

// stopTimeout bounds the graceful stop of an operator.
const stopTimeout = 20 * time.Second

// ProfileLabel is the label of a processor profile that holds an operator's name.
const ProfileLabel = "operator"

// running is an operator that was started.
type running struct {
	cancel context.CancelFunc
	done   chan error
	line   *line
}

// launch starts a program and returns when it works. Its operators are among those that
// run from the moment on at which they may write, so that they can be severed.
func (r *Rig) launch(p operator.Program) error {
	name := p.Name
	as := Process{Config: r.plane.Config, Flags: r.flags()}
	if r.options.Installed != nil {
		var err error
		if as, err = r.options.Installed(r.ctx, name); err != nil {
			return fmt.Errorf("find out how %s operator runs: %w", name, err)
		}
	}
	cfg := rest.CopyConfig(as.Config)
	if r.options.Fault != "" {
		cfg.Wrap(r.injector.Wrap(name))
	}
	if r.options.Reach != nil {
		r.options.Reach(name, cfg)
	}
	out := &running{done: make(chan error, 1)}
	var ctx context.Context
	ctx, out.cancel = context.WithCancel(r.ctx)
	out.line = r.Requests.line(name, out.cancel)
	cfg.Wrap(out.line.wrap)
	labels := pprof.Labels(ProfileLabel, name)
	if as.Flags.Shard != "" {
		r.runs(p, out)
		go pprof.Do(ctx, labels, func(ctx context.Context) { out.done <- r.serve(ctx, cfg, p, as.Flags) })
		return nil
	}
	manager, err := r.manager(ctx, cfg, p, as.Flags, nil)
	if err != nil {
		out.cancel()
		return err
	}
	r.runs(p, out)
	// Every goroutine that an operator starts carries its name, so that a profile of the
	// process tells which operator used the processor.
	go pprof.Do(ctx, labels, func(ctx context.Context) { out.done <- manager.Start(ctx) })
	if !manager.GetCache().WaitForCacheSync(ctx) {
		out.cancel()
		r.mu.Lock()
		for _, d := range p.Operators {
			delete(r.operators, d.Name)
		}
		r.mu.Unlock()
		return fmt.Errorf("fill caches of %s operator: %w", name, errors.Join(ctx.Err(), <-out.done))
	}
	return nil
}

// runs notes that the operators of a program run.
func (r *Rig) runs(p operator.Program, as *running) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, d := range p.Operators {
		r.operators[d.Name] = as
	}
}

// serve runs a program for the namespaces of its shard. They may be none: it does not wait
// for caches.
func (r *Rig) serve(ctx context.Context, cfg *rest.Config, p operator.Program, flags operator.Flags) error {
	return shard.Of{Shard: flags.Shard, Operator: p.Name}.Serve(ctx, cfg, func(ctx context.Context, scope *shard.Scope) error {
		manager, err := r.manager(ctx, cfg, p, flags, scope)
		if err != nil {
			return err
		}
		return manager.Start(ctx)
	})
}

// manager is that of a program, which reaches the databases of the rig.
func (r *Rig) manager(ctx context.Context, cfg *rest.Config, p operator.Program, flags operator.Flags, scope *shard.Scope) (ctrl.Manager, error) {
	store := credentials.New(time.Now)
	manager, err := operator.NewManager(ctx, cfg, p, flags, operator.Reach{
		Dial: r.dial(p, store), Credentials: store, MessageDelay: cmp.Or(r.options.MessageDelay, r.options.Delays.seconds(1)), Scope: scope,
	})
	if err != nil {
		return nil, fmt.Errorf("start %s operator: %w", p.Name, err)
	}
	return manager, nil
}

// dial is how a program reaches PD.
func (r *Rig) dial(p operator.Program, store *credentials.Store) pd.Dialer {
	options := []pdclient.DialerOption{pdclient.WithTLS(store.TLSForPD)}
	if slices.ContainsFunc(p.Operators, func(d operator.Definition) bool { return d.Kind == v1alpha1.KindPDGroup }) {
		options = append(options, pdclient.WithConfig())
	}
	out := r.dialer(options...)
	if r.options.Dial != nil {
		out = r.options.Dial(p.Name, out)
	}
	return out
}

// dialer reaches the databases of this rig and of its neighbours.
func (r *Rig) dialer(options ...pdclient.DialerOption) pd.Dialer {
	own, others := r.Databases.Dialer(options...), map[string]pd.Dialer{}
	for _, n := range r.options.Neighbours {
		others[n.namespace] = n.Databases.Dialer(options...)
	}
	return func(group types.NamespacedName) (pd.Client, error) {
		if dial, found := others[group.Namespace]; found {
			return dial(group)
		}
		return own(group)
	}
}

// tell tells the watchers whether an operator runs.
func (r *Rig) tell(name string, runs bool) {
	r.Watcher.running(name, runs)
	for _, n := range r.options.Neighbours {
		n.Watcher.running(name, runs)
	}
}

// stop ends an operator gracefully.
func (r *running) stop() error {
	r.cancel()
	deadline := time.NewTimer(stopTimeout)
	defer deadline.Stop()
	select {
	case err := <-r.done:
		return err
	case <-deadline.C:
		return errors.New("it did not end in time")
	}
}

// flags returns the command line of the operators.
func (r *Rig) flags() operator.Flags {
	out := operator.Flags{
		Namespaces: r.namespace, MetricsAddress: "0", ProbeAddress: "0", Concurrency: 8,
		ReconcileTimeout: time.Minute, RelistPeriod: r.options.Relist, ClientQPS: -1, LogLevel: "error", LogFormat: "text",
		Image: "tidb-groups/operator:dev",
	}
	for _, n := range r.options.Neighbours {
		// As many workers for each namespace, and of all, as operators have by default.
		out.Concurrency, out.NamespaceConcurrency = 32, 8
		out.Namespaces += "," + n.namespace
	}
	if r.options.ClusterWide {
		out.Namespaces = ""
	}
	return out
}

// StartOperators implements scenario.World.
func (r *Rig) StartOperators(_ context.Context, names ...string) error {
	for _, name := range names {
		if slices.Contains(r.Running(), name) {
			continue
		}
		d, err := findDefinition(name)
		if err != nil {
			return err
		}
		started := operator.NewProgram(d)
		if r.options.OneProcess {
			started = suite.Program()
		}
		if err := r.launch(started); err != nil {
			return err
		}
		for _, d := range started.Operators {
			r.tell(d.Name, true)
		}
	}
	return nil
}

// StopOperators implements scenario.World. Operators of one process are stopped together,
// whichever is named.
func (r *Rig) StopOperators(_ context.Context, names ...string) error {
	errs := make([]error, len(names))
	var stopping sync.WaitGroup
	for i, name := range names {
		started := r.forget(name)
		if started == nil {
			continue
		}
		stopping.Go(func() {
			if err := started.stop(); err != nil {
				errs[i] = fmt.Errorf("stop the %s operator: %w", name, err)
			}
		})
	}
	stopping.Wait()
	return errors.Join(errs...)
}

// forget takes an operator, and those of its process, from those that run, and returns the
// process; nil if it does not run.
func (r *Rig) forget(name string) *running {
	r.mu.Lock()
	started, together := r.operators[name], []string{name}
	for other, process := range r.operators {
		if started != nil && process == started && other != name {
			together = append(together, other)
		}
	}
	for _, one := range together {
		delete(r.operators, one)
	}
	r.mu.Unlock()
	for _, one := range together {
		r.tell(one, false)
	}
	return started
}

// Sever cuts operators off from the API server, now and for good: what they
// have on the way is written or not, and they never learn which. It returns at
// once, so that [Options.Wrote] may call it; StopOperators then does the rest of
// a crash.
func (r *Rig) Sever(names ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range names {
		if started := r.operators[name]; started != nil {
			started.line.cut()
		}
	}
}

// Running returns the names of the operators that run.
func (r *Rig) Running() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.operators))
}
