package storetest

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/pd/pdtest"
	"github.com/tidb-groups/tidb-groups/shared/testkit/controlplane"
)

// ClusterID of every made-up PD.
const ClusterID = "7480000000000000001"

// Patience is how long anything that should happen may take.
const Patience = 15 * time.Second

// Rig is an operator that runs on a control plane. One serves all tests of a
// package.
type Rig struct {
	client client.WithWatch

	mu  sync.Mutex
	pds map[types.NamespacedName]*pdtest.PD
}

// Main is the body of a TestMain: it runs an operator around the tests. crds is
// the directory of the CRDs.
func Main(m *testing.M, definition operator.Definition, crds string, ready func(*Rig)) (code int) {
	ctrl.SetLogger(zap.New(zap.WriteTo(os.Stderr)))
	// Long enough for building Kubernetes on a slow machine.
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Minute)
	defer cancel()
	fail := func(err error) int {
		fmt.Fprintln(os.Stderr, err)
		return max(code, 1)
	}
	cp, err := controlplane.Start(ctx, controlplane.Options{CRDPaths: []string{crds}})
	if err != nil {
		return fail(err)
	}
	defer func() {
		if err := cp.Stop(); err != nil {
			code = fail(err)
		}
	}()
	rig, manager, err := newRig(ctx, cp, definition)
	if err != nil {
		return fail(err)
	}
	stopped := make(chan error, 1)
	go func() { stopped <- manager.Start(ctx) }()
	ready(rig)
	code = m.Run()
	cancel()
	if err := <-stopped; err != nil {
		return fail(err)
	}
	return code
}

func newRig(ctx context.Context, cp *controlplane.ControlPlane, definition operator.Definition) (*Rig, ctrl.Manager, error) {
	scheme, err := operator.NewScheme()
	if err != nil {
		return nil, nil, err
	}
	c, err := client.NewWithWatch(cp.Config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, nil, fmt.Errorf("build client: %w", err)
	}
	rig := &Rig{client: c, pds: map[types.NamespacedName]*pdtest.PD{}}
	manager, err := operator.NewManager(ctx, cp.Config, definition, operator.Flags{
		MetricsAddress: "0", ProbeAddress: "0", Concurrency: 4, ReconcileTimeout: time.Minute, ClientQPS: -1,
	}, rig.dial)
	return rig, manager, err
}

func (r *Rig) dial(key types.NamespacedName) (pd.Client, error) { return r.pd(key), nil }

func (r *Rig) pd(key types.NamespacedName) *pdtest.PD {
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

// Stage returns a namespace of its own for one test.
func (r *Rig) Stage(t *testing.T) *Stage {
	t.Helper()
	require.NotNil(t, r, "the operator did not start")
	namespace := controlplane.Namespace(t, r.client)
	return &Stage{
		T: t, Client: r.client, Namespace: namespace, rig: r,
		PD: r.pd(types.NamespacedName{Namespace: namespace, Name: PDGroupName}),
	}
}
