package stage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/tidb-groups/tidb-groups/shared/credentials"
	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/pd/pdtest"
	"github.com/tidb-groups/tidb-groups/shared/testkit/controlplane"
)

// ClusterID of every made-up PD.
const ClusterID = "7480000000000000001"

// Server is an API server that the tests of a package share.
type Server struct {
	// Client reads and writes as the cluster's administrator.
	Client client.WithWatch
	// Log is what the operators log.
	Log *Log

	config *rest.Config
	// starting lets one operator at a time take over the metrics of its kind.
	starting sync.Mutex

	mu  sync.Mutex
	pds map[types.NamespacedName]*pdtest.PD
}

// Options of a Server.
type Options struct {
	controlplane.Options
	// Everywhere is an operator that runs for all stages together, and sees
	// what belongs to no namespace, such as nodes. Without it, each Stage
	// starts an operator of its own.
	Everywhere *operator.Definition
}

// Main is the body of a TestMain: it runs the tests on a Server, which ready is
// given before them, and returns the exit code.
func Main(m *testing.M, options Options, ready func(*Server)) int {
	code, err := run(m, options, ready)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return max(code, 1)
	}
	return code
}

func run(m *testing.M, options Options, ready func(*Server)) (code int, err error) {
	// Long enough for building Kubernetes on a slow machine.
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Minute)
	defer cancel()
	log := &Log{}
	// At once: controller-runtime drops what is logged from half a minute after the start on if no
	// logger is set by then, and a control plane may take as long on a busy machine.
	ctrl.SetLogger(zap.New(zap.WriteTo(log)))
	cp, err := controlplane.Start(ctx, options.Options)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, cp.Stop()) }()
	server, err := newServer(cp.Config, log)
	if err != nil {
		return 0, err
	}
	ready(server)
	if options.Everywhere == nil {
		return controlplane.RunTests(m), nil
	}
	stop, err := server.start(ctx, server.config, *options.Everywhere, operatorFlags(""))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	return controlplane.RunTests(m), nil
}

func newServer(config *rest.Config, log *Log) (*Server, error) {
	server := &Server{Log: log, config: config, pds: map[types.NamespacedName]*pdtest.PD{}}
	scheme, err := operator.NewScheme()
	if err != nil {
		return nil, err
	}
	server.Client, err = client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("build client: %w", err)
	}
	return server, nil
}

func operatorFlags(namespace string) operator.Flags {
	return operator.Flags{Namespaces: namespace, MetricsAddress: "0", ProbeAddress: "0", Concurrency: 4, ReconcileTimeout: time.Minute, ClientQPS: -1}
}

// start runs an operator until the returned function is called, which waits
// for its end.
func (r *Server) start(ctx context.Context, config *rest.Config, definition operator.Definition, flags operator.Flags) (stop func() error, err error) {
	ctx, cancel := context.WithCancel(ctx)
	var dial pd.Dialer
	if definition.Dialer != nil {
		dial = func(key types.NamespacedName) (pd.Client, error) { return r.pd(key), nil }
	}
	r.starting.Lock()
	manager, err := operator.NewManager(ctx, config, operator.NewProgram(definition), flags, operator.Reach{Dial: dial, Credentials: credentials.New(time.Now)})
	r.starting.Unlock()
	if err != nil {
		cancel()
		return nil, err
	}
	done := make(chan error, 1)
	go func() { done <- manager.Start(ctx) }()
	return sync.OnceValue(func() error {
		cancel()
		return <-done
	}), nil
}

// pd returns the made-up PD of a PDGroup, which has one member and no store at
// first.
func (r *Server) pd(key types.NamespacedName) *pdtest.PD {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pds[key] == nil {
		r.pds[key] = pdtest.New(pd.View{
			ClusterID: ClusterID, Leader: "pd-0", Members: []pd.Member{{Name: "pd-0", ID: "1", Healthy: true}},
			LocationLabels: []string{"zone", "host"}, MaxReplicas: 3, PlacementRules: true,
		})
	}
	return r.pds[key]
}
