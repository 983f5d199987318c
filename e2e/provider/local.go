package provider

import (
	"context"
	"errors"
	"os"
	"slices"

	"github.com/tidb-groups/tidb-groups/e2e/images"
	"github.com/tidb-groups/tidb-groups/e2e/localcluster"
)

// local is the cluster that this repository builds from source.
type local struct {
	options Options
	cluster *localcluster.Cluster
}

func newLocal(o Options) (Provider, error) {
	if o.Images == Upstream {
		return nil, errors.New("PROVIDER=local has no registry to pull from: use IMAGES=real or IMAGES=standin, or PROVIDER=kubeconfig with IMAGES=upstream")
	}
	if os.Geteuid() != 0 {
		return nil, errors.New("PROVIDER=local starts kubelets and containerd and needs root: run it with sudo, or use PROVIDER=kind or PROVIDER=kubeconfig")
	}
	cluster, err := localcluster.New(localcluster.Options{Out: o.Out})
	return &local{options: o, cluster: cluster}, err
}

func (l *local) Name() string                   { return Local }
func (l *local) Kubeconfig() string             { return l.cluster.Kubeconfig() }
func (l *local) Registry() string               { return "" }
func (l *local) Down(ctx context.Context) error { return l.cluster.Down(ctx) }

// Up builds while nothing else needs the processor, then starts the nodes, then
// loads.
func (l *local) Up(ctx context.Context) error {
	sets := append(l.options.sets(), images.SetBase)
	if err := buildPrograms(ctx, l.options.Out, slices.Concat(localcluster.Programs(), images.Programs(sets...)), sets); err != nil {
		return err
	}
	if err := l.cluster.Up(ctx); err != nil {
		return err
	}
	printLine(l.options.Out, "building the images of operators and database (cached by content)")
	archives, err := images.Build(ctx, l.options.sets()...)
	if err != nil {
		return err
	}
	return l.cluster.Load(ctx, archives...)
}

// StopNode implements Nodes.
func (l *local) StopNode(ctx context.Context, name string) error {
	return l.cluster.StopNode(ctx, name)
}

// StartNode implements Nodes.
func (l *local) StartNode(ctx context.Context, name string) error {
	return l.cluster.StartNode(ctx, name)
}

// FillDisk implements Disks.
func (l *local) FillDisk(ctx context.Context, node string) error {
	return l.cluster.FillDisk(ctx, node)
}

// FreeDisk implements Disks.
func (l *local) FreeDisk(ctx context.Context, node string) error {
	return l.cluster.FreeDisk(ctx, node)
}
