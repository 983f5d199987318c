package rig

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/rest"

	instance "github.com/tidb-groups/tidb-groups/operators/instance/controller"
	pdgroup "github.com/tidb-groups/tidb-groups/operators/pdgroup/controller"
	tidbcluster "github.com/tidb-groups/tidb-groups/operators/tidbcluster/controller"
	tidbgroup "github.com/tidb-groups/tidb-groups/operators/tidbgroup/controller"
	tiflashgroup "github.com/tidb-groups/tidb-groups/operators/tiflashgroup/controller"
	tikvgroup "github.com/tidb-groups/tidb-groups/operators/tikvgroup/controller"
	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/pd"
)

// definitions returns all operators.
func definitions() []operator.Definition {
	return []operator.Definition{
		instance.Definition(), pdgroup.Definition(), tikvgroup.Definition(),
		tidbgroup.Definition(), tiflashgroup.Definition(), tidbcluster.Definition(),
	}
}

// Operators returns the names of all operators.
func Operators() []string {
	var out []string
	for _, d := range definitions() {
		out = append(out, d.Name)
	}
	return out
}

// definition returns one operator by name.
func definition(name string) (operator.Definition, error) {
	for _, d := range definitions() {
		if d.Name == name {
			return d, nil
		}
	}
	return operator.Definition{}, fmt.Errorf("no operator is called %q", name)
}

// stopTimeout bounds the graceful stop of an operator.
const stopTimeout = 20 * time.Second

// running is an operator that was started.
type running struct {
	cancel context.CancelFunc
	done   chan error
}

// launch starts an operator and returns when it works.
func launch(ctx context.Context, cfg *rest.Config, d operator.Definition, flags operator.Flags, requests *Requests, dial pd.Dialer) (*running, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(requests.wrap(d.Name))
	ctx, cancel := context.WithCancel(ctx)
	manager, err := operator.NewManager(ctx, cfg, d, flags, dial)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("start %s operator: %w", d.Name, err)
	}
	r := &running{cancel: cancel, done: make(chan error, 1)}
	go func() { r.done <- manager.Start(ctx) }()
	if !manager.GetCache().WaitForCacheSync(ctx) {
		cancel()
		return nil, fmt.Errorf("fill caches of %s operator: %w", d.Name, errors.Join(ctx.Err(), <-r.done))
	}
	return r, nil
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

// flags returns the command line of the operators; namespace empty means all.
func flags(namespace string) operator.Flags {
	return operator.Flags{
		Namespaces: namespace, MetricsAddress: "0", ProbeAddress: "0", Concurrency: 8,
		ReconcileTimeout: time.Minute, ClientQPS: -1, LogLevel: "error", LogFormat: "text",
	}
}
