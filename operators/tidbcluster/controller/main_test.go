package controller

import (
	"context"
	"io"
	"os"
	"testing"

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/testkit/controlplane"
)

// What TestMain hands to the tests: an API server with the CRDs. Each test runs the operator in a
// namespace of its own, and plays the other operators.
var (
	api    client.WithWatch
	access *rest.Config
)

func TestMain(m *testing.M) {
	options := controlplane.Options{CRDPaths: []string{"../../../deploy/crds"}}
	os.Exit(controlplane.Main(m, options, func(cp *controlplane.ControlPlane) {
		ctrl.SetLogger(zap.New(zap.WriteTo(io.Discard)))
		access = cp.Config
		scheme, err := operator.NewScheme()
		if err == nil {
			api, err = client.NewWithWatch(cp.Config, client.Options{Scheme: scheme})
		}
		if err != nil {
			panic(err)
		}
	}))
}

// background is a context for what outlives a test's own.
func background() context.Context { return context.Background() }
