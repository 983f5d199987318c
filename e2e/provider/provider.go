package provider

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/tidb-groups/tidb-groups/e2e/images"
	"github.com/tidb-groups/tidb-groups/shared/testkit/binaries"
)

// Names of the providers.
const (
	Local      = "local"
	Kind       = "kind"
	Kubeconfig = "kubeconfig"
)

// Images to run.
const (
	// Real are a PD and a TiDB built from the real ones' source over a TiKV of
	// ours: a database that answers SQL and keeps its rows. TiFlash is a stand-in.
	Real = "real"
	// StandIns are small programs of this repository: no database, but what the
	// operators see of one.
	StandIns = "standin"
	// Upstream are the real images of PingCAP.
	Upstream = "upstream"
)

// Provider is a Kubernetes with the images loaded.
type Provider interface {
	// Name of the provider.
	Name() string
	// Up starts the cluster if it does not run, and loads the images.
	Up(ctx context.Context) error
	// Down stops what Up started, and nothing else.
	Down(ctx context.Context) error
	// Kubeconfig is the path of a file that reaches the cluster.
	Kubeconfig() string
	// Registry is what operator images are prefixed with; empty if they are
	// loaded under their own names.
	Registry() string
}

// Nodes is implemented by providers whose nodes can be lost.
type Nodes interface {
	// StopNode makes a node fail like a machine that loses its power.
	StopNode(ctx context.Context, name string) error
	// StartNode brings it back.
	StartNode(ctx context.Context, name string) error
}

// Disks is implemented by providers whose nodes have disks that can be filled.
type Disks interface {
	// FillDisk leaves no room on the disk of a node's kubelet, which evicts its pods.
	FillDisk(ctx context.Context, node string) error
	// FreeDisk makes room again.
	FreeDisk(ctx context.Context, node string) error
}

// Options of New.
type Options struct {
	// Name of the provider; empty means local.
	Name string
	// Images to run; empty means real ones, built from source.
	Images string
	// Extra are further sets of images to load, as package images names them.
	Extra []string
	// Out gets a line per step.
	Out io.Writer
}

// FromEnvironment reads PROVIDER and IMAGES.
func FromEnvironment(out io.Writer) Options {
	return Options{Name: os.Getenv("PROVIDER"), Images: os.Getenv("IMAGES"), Out: out}
}

// New returns a provider, or an error that says what is missing on this machine
// for it.
func New(o Options) (Provider, error) {
	o.Images = cmp.Or(o.Images, Real)
	if kinds := []string{Real, StandIns, Upstream}; !slices.Contains(kinds, o.Images) {
		return nil, fmt.Errorf("IMAGES is %q: it must be one of %s", o.Images, strings.Join(kinds, ", "))
	}
	switch o.Name {
	case "", Local:
		return newLocal(o)
	case Kind:
		return newKind(o)
	case Kubeconfig:
		return newKubeconfig(o)
	}
	return nil, fmt.Errorf("PROVIDER is %q: it must be one of %s", o.Name, strings.Join([]string{Local, Kind, Kubeconfig}, ", "))
}

// Version is what a cluster must ask for to run the images; empty if any version
// of a registry does.
func (o Options) Version() string {
	switch cmp.Or(o.Images, Real) {
	case Upstream:
		return ""
	case StandIns:
		return images.DefaultVersion
	default:
		return binaries.Release
	}
}

// sets returns the images to load, as images.Build names them: the operators
// always, a database unless its images are pulled.
func (o Options) sets() []string {
	switch o.Images {
	case Upstream:
		return []string{images.SetOperators}
	case StandIns:
		return append([]string{images.SetOperators, images.BusyboxRef, images.SetStandins}, o.Extra...)
	default:
		return append([]string{images.SetOperators, images.BusyboxRef, images.SetReal}, o.Extra...)
	}
}

// printLine prints a line of progress; an output that is gone is no error.
func printLine(out io.Writer, line string) {
	if out != nil {
		_, _ = fmt.Fprintln(out, line)
	}
}
